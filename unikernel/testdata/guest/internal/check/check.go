// Package check is how the programs of this module report.
package check

import (
	"fmt"
	"os"
)

var failed bool

// That reports whether something holds.
func That(ok bool, format string, args ...any) {
	if !ok {
		failed = true
		fmt.Printf("FAIL "+format+"\n", args...)
	}
}

// Nil stops the program at an error.
func Nil(err error, what string) {
	if err != nil {
		fmt.Printf("FAIL %s: %v\n", what, err)
		os.Exit(1)
	}
}

// Equal compares.
func Equal[T comparable](got, want T, what string) {
	That(got == want, "%s: got %v, want %v", what, got, want)
}

// Done ends the program.
func Done() {
	Report()
	os.Exit(0)
}

// Report says that all is well, or ends the program if it is not.
func Report() {
	if failed {
		os.Exit(1)
	}
	fmt.Println("ok")
}
