package main

import (
	"context"
	"fmt"
	"io"

	"loam/unikernel"
)

// What --platform means.
const (
	platformAuto    = "auto" // the best that this machine has
	platformVM      = "vm"
	platformProcess = "process"
)

// choosePlatform finds out what platform a name means on this machine. What auto has
// come to is said to say, in one line.
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
