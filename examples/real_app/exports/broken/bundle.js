show('version', missing());
