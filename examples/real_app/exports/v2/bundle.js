show('version', 'Version 2');
