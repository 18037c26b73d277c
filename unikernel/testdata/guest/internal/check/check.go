// Package check reports the results of the programs of this module.
package check

import (
	"fmt"
	"os"
)

var failed bool

// That prints a message if ok is false, and makes the program fail at its end.
func That(ok bool, format string, args ...any) {
	if !ok {
		failed = true
		fmt.Printf("FAIL "+format+"\n", args...)
	}
}

// Nil ends the program if err is not nil.
func Nil(err error, what string) {
	if err != nil {
		fmt.Printf("FAIL %s: %v\n", what, err)
		os.Exit(1)
	}
}

// Equal checks that two values are equal, as That does.
func Equal[T comparable](got, want T, what string) {
	That(got == want, "%s: got %v, want %v", what, got, want)
}

// Done reports the result and ends the program.
func Done() {
	Report()
	os.Exit(0)
}

// Report prints "ok" if all checks have passed, and ends the program otherwise.
func Report() {
	if failed {
		os.Exit(1)
	}
	fmt.Println("ok")
}
