//go:build linux

package interop

import (
	"bytes"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"loam/internal/debian"
)

// Programs of other projects. They run in the same namespace as the test.

// packages maps each program to its Debian package.
var packages = map[string]string{
	"ip": "iproute2", "ss": "iproute2", "bridge": "iproute2",
	"ping": "iputils-ping", "arping": "iputils-arping",
	"tcpdump": "tcpdump", "tshark": "tshark",
	"curl": "curl", "nginx": "nginx",
	"dnsmasq": "dnsmasq-base", "iperf3": "iperf3",
	"wrk": "wrk", "ab": "apache2-utils",
	"qemu-system-x86_64": "qemu-system-x86",
}

// need skips a test if a program is not installed.
func (l *lab) need(program string) {
	l.Helper()
	if _, err := exec.LookPath(program); err != nil {
		l.Skipf("needs %s: apt-get install %s", program, packages[program])
	}
	if pkg := packages[program]; strings.HasPrefix(pkg, "iputils-") && !debian.IsFrom(program, "iputils") {
		l.Skipf("needs %s of %s, and another comes first in PATH", program, pkg)
	}
}

// ip runs ip(8).
func (l *lab) ip(args ...string) {
	l.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		l.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// run runs a program to its end and returns its output, including standard error.
func (l *lab) run(program string, args ...string) string {
	l.Helper()
	out, err := l.try(program, args...)
	if err != nil {
		l.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return out
}

// try is like run, but the program may fail.
func (l *lab) try(program string, args ...string) (string, error) {
	l.Helper()
	l.need(program)
	out, err := exec.CommandContext(l.ctx, program, args...).CombinedOutput()
	return string(out), err
}

// service is a program that runs during the test.
type service struct {
	lab    *lab
	cmd    *exec.Cmd
	output output
	ended  chan struct{} // closed when the program has ended
}

// output collects the output of a program.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start starts a program. It is killed at the end of the test at the latest.
func (l *lab) start(program string, args ...string) *service {
	l.Helper()
	l.need(program)
	s := &service{lab: l, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	s.cmd.WaitDelay = time.Second // a child process of the program may keep our pipe open
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	l.must(s.cmd.Start())
	go func() {
		s.cmd.Wait()
		close(s.ended)
	}()
	l.Cleanup(func() {
		syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // kills the program and its child processes
		<-s.ended
		if l.Failed() {
			l.Logf("%s said:\n%s", program, s.output.String())
		}
	})
	return s
}

// awaitOutput waits until the program has printed text.
func (s *service) awaitOutput(text string) *service {
	s.lab.Helper()
	s.lab.eventually(s.cmd.Path+" prints "+text, func() bool { return strings.Contains(s.output.String(), text) })
	return s
}

// capture runs tcpdump, which writes what passes the tap to a file.
func (l *lab) capture(file string) *service {
	l.Helper()
	return l.start("tcpdump", "-i", l.tap, "-U", "--immediate-mode", "-s", "200", "-B", "16384", "-w", file).awaitOutput("listening on")
}
