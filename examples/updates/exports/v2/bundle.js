show('title', 'Notes 2');
