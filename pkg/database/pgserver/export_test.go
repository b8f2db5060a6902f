package pgserver

// FindBinaries is tested by itself: the machine that runs the tests has only one arrangement of them.
var FindBinaries = findBinaries
