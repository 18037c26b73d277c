package unikernel

import (
	"errors"
	"fmt"
	"syscall"

	"loam/usernet"
)

// publishError returns an error with advice for a host port that cannot be published.
func publishError(e *usernet.ForwardError) error {
	next := "use another address or port"
	switch {
	case e.Free.IsValid():
		kind := ""
		if e.Forward.Proto == "udp" {
			kind = "/udp"
		}
		return errorf(
			fmt.Sprintf("end the program that has it, use another port, or publish there alone: -p %s:%d%s", e.Free, e.Forward.Guest.Port(), kind),
			"%s of the host is taken (%s), and %s is free", e.Forward.Host, e.Forward.Proto, e.Free)
	case errors.Is(e.Err, syscall.EADDRINUSE):
		return errorf("end the program that has it, or use another port", "%s of the host is taken (%s)", e.Forward.Host, e.Forward.Proto)
	case errors.Is(e.Err, syscall.EACCES):
		next = "use a port from 1024 on, or be root"
	}
	return errorf(next, "%s of the host cannot be had: %v", e.Forward.Host, e.Err)
}
