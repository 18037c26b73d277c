package main

import (
	"errors"
	"strings"
)

// PENDING: both come from loam/unikernel/overlay once that has landed.

func knownGo() string { return "go1.26" }

func knowsGo(_, version string) error {
	if !strings.HasPrefix(version, "go1.26") {
		return errors.New("this release of Go is not one that Loam knows")
	}
	return nil
}
