package main

import (
	"context"
	"fmt"
	"io"

	"loam/unikernel"
)

// Values of the option --platform: where the program runs.
const (
	platformAuto    = "auto" // the best platform available on this machine
	platformVM      = "vm"
	platformProcess = "process"
)

// choosePlatform returns the platform for a value of --platform on this machine. If the
// value is auto, it writes one line with its choice and the reason to the writer say.
func choosePlatform(ctx context.Context, name string, say io.Writer) (unikernel.Choice, error) {
	switch name {
	case platformProcess:
		return unikernel.Choice{Platform: unikernel.Process}, nil
	case platformVM:
		return unikernel.ChooseMachine(ctx)
	}
	c, err := unikernel.Choose(ctx)
	if err == nil {
		fmt.Fprintf(say, "loam: %s\n", c.Why)
	}
	return c, err
}
