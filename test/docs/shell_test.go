package docs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell is a bash process that runs the commands of one document.
type shell struct {
	t       *testing.T
	in      io.Writer
	out     *bufio.Reader
	temp    string
	server  *running
	started int      // number of servers so far
	shown   []string // what a user sees at the terminal: commands with "$ ", and their output
}

// running is a server in the background. Its output goes to a file.
type running struct {
	pid    int
	output string
	text   string
}

// marker precedes the exit status of each command in the output of bash.
const marker = "LOAM-DOCS-STATUS"

// newShell starts bash in the folder dir.
func newShell(t *testing.T, dir string) *shell {
	temp := t.TempDir()
	cmd := exec.Command("bash", "--noprofile", "--norc")
	cmd.Dir = dir
	cmd.Env = environment(t, temp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	s := &shell{t: t, in: in, out: bufio.NewReader(r), temp: temp}
	t.Cleanup(func() {
		s.endServer()
		s.run(`[ ! -d "$XDG_RUNTIME_DIR/loam" ] || loam ps -aq | xargs -r loam rm -f`) // guests of a failed test run on otherwise
		in.Close()
		cmd.Wait()
		r.Close()
	})
	s.run(`sudo() { "$@"; }`)
	s.run("set -m; trap : INT") // set -m gives servers process groups of their own; the trap keeps the shell alive on SIGINT
	return s
}

// environment returns the environment of a user with the home folder temp and the caches of this user.
func environment(t *testing.T, temp string) []string {
	t.Helper()
	env := append(os.Environ(), "HOME="+temp, "USER=root", "GOBIN="+filepath.Join(temp, "bin"), "GOPROXY=off", "GOFLAGS=-modcacherw",
		"PATH="+filepath.Join(temp, "bin")+":"+os.Getenv("PATH"))
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return append(env, "XDG_CACHE_HOME="+cache, "XDG_RUNTIME_DIR="+temp)
}

// run runs a command in the shell and returns its output and its exit status.
func (s *shell) run(text string) (output string, status int) {
	fmt.Fprintf(s.in, "{ %s\n} </dev/null\nloam_status=$?; echo; echo %s $loam_status\n", text, marker)
	var b strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if rest, ok := strings.CutPrefix(line, marker); ok {
			status, _ = strconv.Atoi(strings.TrimSpace(rest))
			return b.String(), status
		}
		b.WriteString(line)
		if err != nil {
			s.t.Fatalf("the shell ended: %v\n%s", err, b.String())
		}
	}
}

// start starts a server and waits for its expected output.
func (s *shell) start(c command) error {
	s.endServer()
	s.started++ // each server has a file of its own, because the shell may truncate it later than this test first reads it
	file := filepath.Join(s.temp, fmt.Sprint("server-output-", s.started))
	out, _ := s.run(fmt.Sprintf("%s >%s 2>&1 &\necho pid $!", c.text, file))
	_, after, _ := strings.Cut(out, "pid ")
	pid, err := strconv.Atoi(strings.TrimSpace(after))
	if err != nil {
		return fmt.Errorf("%s: no process: %q", c.text, out)
	}
	s.server = &running{pid, file, c.text}
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for {
		output, _ := os.ReadFile(file)
		w := missing(c.want, string(output))
		if w == "" {
			s.show(c.text, string(output))
			return nil
		}
		if _, status := s.run("kill -0 " + strconv.Itoa(pid)); status != 0 {
			return fmt.Errorf("%s ended without %q in its output:\n%s", c.text, w, output)
		}
		<-poll.C
	}
}

// endServer sends SIGINT to the server, if there is one, and waits until it has ended.
func (s *shell) endServer() {
	if s.server == nil {
		return
	}
	pid := strconv.Itoa(s.server.pid)
	s.run("kill -INT -- -" + pid + "; wait " + pid) // the process group, as a terminal does for Ctrl-C
	s.server = nil
}

// check runs a command, which must exit with status 0 and print the expected lines.
func (s *shell) check(c command) error {
	output, status := s.run(c.text)
	if status != 0 {
		return fmt.Errorf("%s: exit status %d\n%s", c.text, status, output)
	}
	if w := missing(c.want, output); w != "" {
		return fmt.Errorf("%s: %q is not in the output:\n%s", c.text, w, output)
	}
	s.t.Logf("$ %s\n%s", c.text, strings.TrimSpace(output))
	s.show(c.text, output)
	return nil
}

// show adds a command and its output to shown.
func (s *shell) show(text, output string) {
	s.shown = append(s.shown, "$ "+text)
	for line := range strings.SplitSeq(strings.TrimSpace(output), "\n") {
		s.shown = append(s.shown, strings.TrimRight(line, "\r "))
	}
}
