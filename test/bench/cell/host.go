package cell

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"loam/test/bench/guest"
	"loam/test/bench/subject"
	"loam/unikernel"
	"loam/usernet"
)

// host is the process that runs a program of package guest, on Loam or on Linux. It
// answers only if the program ends, which it should not.
func host(spec Spec) (answer, error) {
	<-allowed
	runtime.LockOSThread() // the program ends with the thread that started it
	if spec.Subject == subject.Loam {
		status, err := unikernel.RunProgram(spec.Files.OnLoam, unikernel.Options{Network: hostNetwork(spec.Place)})
		return answer{}, errors.Join(err, fmt.Errorf("the program ended with status %d", status))
	}
	if err := loopbackUp(); err != nil {
		return answer{}, err
	}
	cmd := exec.Command(spec.Files.Plain)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return answer{}, errors.Join(cmd.Run(), errors.New("the program ended"))
}

// hostNetwork is what "loam run" would be told.
func hostNetwork(place Place) unikernel.Network {
	if place == Wire {
		return unikernel.Network{Kind: unikernel.TapNetwork, Tap: linkName, Address: subject.Second, Gateway: subject.First.Addr()}
	}
	return unikernel.Network{Kind: unikernel.UserNetwork, Forwards: []usernet.Forward{{
		Proto: "tcp", Host: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), guest.Port),
	}}}
}
