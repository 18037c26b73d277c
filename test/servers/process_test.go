//go:build linux && !race

package servers

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loam/internal/freeport"
)

// patience is the longest time for a server to be built and serve, or to exit.
const patience = 10 * time.Minute

// process is a running server.
type process struct {
	cmd   *exec.Cmd
	port  int
	log   *log
	ended chan error // receives the error with which the process ended, once
}

// log keeps the end of the output of a program.
type log struct {
	mu   sync.Mutex
	text []byte
}

const logSize = 16 << 10

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if n := len(l.text) - logSize; n > 0 {
		l.text = l.text[n:]
	}
	return len(p), nil
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// buildLoam builds the loam command.
func buildLoam(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "loam")
	if out, err := exec.Command("go", "build", "-o", bin, "loam/cmd/loam").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// install builds a program of a module in the usual way.
func install(t *testing.T, pkg string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "install", pkg)
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go install %s: %v\n%s", pkg, err, out)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("go install %s made %v, %v", pkg, files, err)
	}
	return filepath.Join(dir, files[0].Name())
}

// startOnLoam starts a server by "loam run" with additional flags.
func (s *server) startOnLoam(t *testing.T, loam string, flags ...string) *process {
	port := freePort(t)
	forward := fmt.Sprintf("%d:%d", port, port)
	args := append(append([]string{"run"}, flags...), "-p", forward)
	if s.udp {
		args = append(args, "-p", forward+"/udp")
	}
	dir := t.TempDir()
	own := s.args(dir, port)
	args = append(append(args, "-v", dir, s.pkg, "--"), own...)
	return s.start(t, exec.Command(loam, args...), port)
}

func (s *server) startOnLinux(t *testing.T) *process {
	port := freePort(t)
	return s.start(t, exec.Command(install(t, s.pkg), s.args(t.TempDir(), port)...), port)
}

// start starts a server and waits until it serves.
func (s *server) start(t *testing.T, cmd *exec.Cmd, port int) *process {
	t.Helper()
	p := &process{cmd: cmd, port: port, log: &log{}, ended: make(chan error, 1)}
	cmd.Dir = t.TempDir()
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- cmd.Wait() }()
	t.Cleanup(func() { cmd.Process.Kill() })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.up(ctx, port)
		if err == nil {
			return p
		}
		select {
		case end := <-p.ended:
			t.Fatalf("%s ended before it served: %v\n%s", s.name, end, p.log)
		case <-ctx.Done():
			t.Fatalf("%s does not serve: %v\n%s", s.name, err, p.log)
		case <-tick.C:
		}
	}
}

// interrupt ends a server like Ctrl-C. All of these servers then exit with status 0.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	p.cmd.Process.Signal(os.Interrupt)
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("after Ctrl-C: %v\n%s", err, p.log)
		}
	case <-time.After(patience):
		t.Fatalf("does not end on Ctrl-C\n%s", p.log)
	}
}

// quit ends the server like Ctrl-\, so that its log shows what each goroutine waited for.
func (p *process) quit(t *testing.T) {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("does not end on Ctrl-\\\n%s", p.log)
	}
}

// childOf returns the first child of a process; empty: it has none.
func childOf(pid string) string {
	lists, _ := filepath.Glob("/proc/" + pid + "/task/*/children")
	for _, file := range lists {
		list, _ := os.ReadFile(file)
		if f := strings.Fields(string(list)); len(f) > 0 {
			return f[0]
		}
	}
	return ""
}

// resident is the memory of the server, in KiB; 0 if it cannot be read. On Loam
// the server is the only child of a process that confines it, which is a child of the loam command.
func (p *process) resident() int {
	pid := strconv.Itoa(p.cmd.Process.Pid)
	for child := pid; child != ""; {
		pid, child = child, childOf(child)
	}
	status, _ := os.ReadFile("/proc/" + pid + "/status")
	_, rest, _ := bytes.Cut(status, []byte("\nVmRSS:"))
	if f := bytes.Fields(rest); len(f) > 0 {
		kib, _ := strconv.Atoi(string(f[0]))
		return kib
	}
	return 0
}

func freePort(t *testing.T) int {
	t.Helper()
	at, err := freeport.Next()
	if err != nil {
		t.Fatal(err)
	}
	return int(at.Port())
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// tryTime is the timeout of one attempt to reach a server that may not be up yet.
const tryTime = 2 * time.Second

func servesHTTP(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", "http://"+address(port)+"/", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err == nil {
		answer.Body.Close()
	}
	return err
}

func servesDNS(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address(port))
	}}
	_, err := r.LookupNetIP(ctx, "ip4", "up.example.org.")
	return err
}

// servesNATS waits for the line that a NATS server sends first.
func servesNATS(ctx context.Context, port int) error {
	c, err := (&net.Dialer{Timeout: tryTime}).DialContext(ctx, "tcp", address(port))
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(tryTime))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "INFO ") {
		err = fmt.Errorf("it says %q", line)
	}
	return err
}
