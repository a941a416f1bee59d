show('title', 'Notes 4');
