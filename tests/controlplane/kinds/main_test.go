package main

import "testing"

func TestCommittedFilesAreWhatIsWritten(t *testing.T) {
	if err := run("../../../apiserver/src/kinds", true); err != nil {
		t.Fatal(err)
	}
}
