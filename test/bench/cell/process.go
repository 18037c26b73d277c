package cell

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
)

// Verbs are first arguments of the program. With one of them, Main runs a process of a measurement (a cell) instead of
// the command-line tool.
const (
	nearVerb = "cell-near"
	farVerb  = "cell-far"
	hostVerb = "cell-host"
)

// If the program was started as a process of a measurement (a cell), Main runs that process and does not return.
// Otherwise it returns false.
func Main() bool {
	if len(os.Args) != 3 {
		return false
	}
	half, ok := map[string]func(Spec) (answer, error){
		nearVerb: near,
		farVerb:  far,
		hostVerb: host,
	}[os.Args[1]]
	if !ok {
		return false
	}
	var spec Spec
	if err := json.Unmarshal([]byte(os.Args[2]), &spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	go listen()
	result, err := half(spec)
	if err != nil {
		result = answer{Error: err.Error()}
	}
	reply(result)
	select {} // blocks: listen ends the process
}

// The channel allowed is closed by listen when the parent process reports that the network is ready. The processes
// far and host wait for it.
var allowed = make(chan struct{})

// listen reads from the parent, and exits when the parent closes the pipe.
func listen() {
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err == nil {
		close(allowed)
		io.Copy(io.Discard, in)
	}
	os.Exit(0)
}

func reply(a answer) {
	b, err := json.Marshal(a)
	if err != nil {
		b, _ = json.Marshal(answer{Error: err.Error()})
	}
	os.Stdout.Write(append(b, '\n'))
}

// process is a child process that communicates over its standard streams.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errors bytes.Buffer
	over   sync.Once // guards the call of cmd.Wait, since several goroutines may want it
}

// start starts this program with verb. With isolated, it gets a network namespace of its own.
func start(ctx context.Context, verb string, spec Spec, isolated bool) (*process, error) {
	arg, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, "/proc/self/exe", verb, string(arg))}
	if spec.Procs != 0 && verb == nearVerb {
		p.cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(spec.Procs))
	}
	if isolated {
		p.cmd.SysProcAttr = isolation()
	}
	p.cmd.Stderr = &p.errors
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a process in its own network namespace: %w (run as root, or where user namespaces are allowed)", err)
	}
	return p, nil
}

// isolation returns the attributes for a new network namespace. Without root, that requires a new user
// namespace too.
func isolation() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	}
	return attr
}

// proceed notifies a process that its network is ready.
func (p *process) proceed() error {
	_, err := io.WriteString(p.in, "go\n")
	return err
}

// answer waits for the next answer of the process.
func (p *process) answer() (answer, error) {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return answer{}, fmt.Errorf("no answer: %w", p.lastWords(err))
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return answer{}, err
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// lastWords adds the process's standard error to err.
func (p *process) lastWords(err error) error {
	p.end()
	if text := bytes.TrimSpace(p.errors.Bytes()); len(text) > 0 {
		return fmt.Errorf("%w: %s", err, firstLine(text))
	}
	return err
}

func firstLine(b []byte) []byte {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return line
}

// end closes the standard input of the process, which makes it exit, and waits for it.
func (p *process) end() {
	p.in.Close()
	p.over.Do(func() { p.cmd.Wait() })
}
