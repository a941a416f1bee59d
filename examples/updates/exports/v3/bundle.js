show('title', missing());
