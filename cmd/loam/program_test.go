//go:build !race

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loam/internal/freeport"
)

// Tests of "loam run" as a user runs it: the command is built and started, with ordinary programs. They do not run
// under the race detector, because the command is built without it.

// loamFolder is the folder of the built command. It is empty until the first test builds the command.
var loamFolder string

func TestMain(m *testing.M) {
	list, err := os.MkdirTemp("", "loam-guests-") // the folder of running guests is not the user's
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_RUNTIME_DIR", list)
	status := m.Run()
	os.RemoveAll(list)
	if loamFolder != "" {
		os.RemoveAll(loamFolder)
	}
	os.Exit(status)
}

// buildLoam builds the command once for all tests, and returns its path.
var buildLoam = sync.OnceValues(func() (path string, err error) {
	if loamFolder, err = os.MkdirTemp("", "loam-test-"); err != nil {
		return "", err
	}
	path = filepath.Join(loamFolder, "loam")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// command returns a function that prepares a command line of loam.
func command(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	loam, err := buildLoam()
	if err != nil {
		t.Fatal(err)
	}
	return func(args ...string) *exec.Cmd { return exec.Command(loam, args...) }
}

// At a terminal, the command sends no queries to the terminal. The terminal's answer would be mixed with the input that
// the user types for the program.
func TestTerminalIsNotQueried(t *testing.T) {
	loam := command(t)("version")
	plain, err := loam.Output()
	if err != nil {
		t.Fatal(err)
	}
	// script(1) provides a terminal; it is in Debian's bsdutils
	at, err := exec.Command("script", "-qec", loam.Path+" version", "/dev/null").Output()
	if got := strings.ReplaceAll(string(at), "\r\n", "\n"); err != nil || got != string(plain) {
		t.Errorf("at a terminal %q, %v; want %q", got, err, plain)
	}
}

// A message about a slow build is printed at a terminal, and nowhere else.
func TestSlowBuildIsReported(t *testing.T) {
	file := program(t, "package main\n\nfunc main() { println(\"done\") }\n")
	loam := command(t)("run", "--platform", "process", "--net", "none", file)
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	slow := t.TempDir() // contains a slow go command
	script := "#!/bin/sh\n[ \"$1\" != build ] || sleep 4\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(slow, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	loam.Env = append(os.Environ(), "PATH="+slow+":"+os.Getenv("PATH"))
	if out, err := loam.CombinedOutput(); err != nil || string(out) != "done\n" {
		t.Errorf("to a file: %v, %q", err, out)
	}
	loam = exec.Command("script", "-qec", "touch "+file+" && "+strings.Join(loam.Args, " "), "/dev/null")
	loam.Env = append(os.Environ(), "PATH="+slow+":"+os.Getenv("PATH"))
	want := "loam: building " + file + "\r\ndone\r\n"
	if out, err := loam.CombinedOutput(); err != nil || string(out) != want {
		t.Errorf("to a terminal: %v, %q, want %q", err, out, want)
	}
}

// Ctrl-C during a build also interrupts the go command. loam prints one line, whether the go command or loam ends
// first.
func TestInterruptedBuildIsReported(t *testing.T) {
	loam := command(t)("run", "--platform", "process", "--net", "none", program(t, "package main\n\nfunc main() {}\n"))
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir() // contains a go command that interrupts its whole process group when it builds
	script := "#!/bin/sh\n[ \"$1\" != build ] || kill -INT 0\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(folder, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	loam.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
	loam.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, _ := loam.CombinedOutput()
	if status := loam.ProcessState.ExitCode(); status != 130 || string(out) != "loam: interrupted\n" {
		t.Errorf("exit status %d, %q", status, out)
	}
}

// Flags of go build select files and set variables, as with "go run", on each available platform.
func TestBuildFlags(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module example.org/flags\n\ngo 1.26\n",
		"app/main.go": "//go:build special\n\npackage main\n\nvar version, name string\n\nfunc main() { print(version, name) }\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	platforms := []string{"process"}
	if _, err := exec.LookPath("qemu-system-x86_64"); err == nil {
		platforms = append(platforms, "vm")
	}
	for _, platform := range platforms {
		loam := command(t)("run", "--platform", platform, "--net", "none", "-tags", "special",
			"-ldflags", "-X=main.version=v1.2 -X main.name=three", "example.org/flags/app")
		loam.Dir = dir
		if out, err := loam.CombinedOutput(); err != nil || string(out) != "v1.2three" {
			t.Errorf("%s: %v, %q", platform, err, out)
		}
	}
}

// If a program listens on a published port only on its own loopback, loam prints a message about the refused
// connection. It prints it once, and only at a terminal.
func TestRefusedConnectionIsReported(t *testing.T) {
	file := program(t, `package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	if _, err := net.Listen("tcp", "127.0.0.1:80"); err != nil {
		panic(err)
	}
	fmt.Println("listening")
	io.Copy(io.Discard, os.Stdin)
}
`)
	loam := command(t)
	const told = "loam: a connection was reset: the program does not listen at port 80"
	for name, times := range map[string]int{"to a file": 0, "to a terminal": 1} {
		t.Run(name, func(t *testing.T) {
			port := freePort(t)
			cmd := loam("run", "--platform", "process", "-p", fmt.Sprintf("%d:80", port), file)
			if times > 0 {
				cmd = exec.Command("script", "-qec", strings.Join(cmd.Args, " "), "/dev/null")
			}
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = cmd.Stdout
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer in.Close() // closing the standard input ends the program
			lines := bufio.NewReader(out)
			for line := ""; strings.TrimSpace(line) != "listening"; { // the line may follow a message about the build
				if line, err = lines.ReadString('\n'); err != nil {
					t.Fatalf("%q, %v", line, err)
				}
			}
			for range 2 {
				c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
				if err == nil {
					c.Read(make([]byte, 1)) // returns when the connection is reset
					c.Close()
				}
			}
			var all string
			if times > 0 {
				all, _ = lines.ReadString('\n')
			}
			in.Close()
			rest, _ := io.ReadAll(lines)
			all += string(rest)
			if err := cmd.Wait(); err != nil || strings.Count(all, told) != times {
				t.Errorf("%v, told %d times, want %d:\n%s", err, strings.Count(all, told), times, all)
			}
		})
	}
}

// program writes a main package to a folder outside any module and returns the file name.
func program(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func freePort(t *testing.T) int {
	t.Helper()
	at, err := freeport.Next()
	if err != nil {
		t.Fatal(err)
	}
	return int(at.Port())
}

// An unmodified web server on the unprivileged network serves a client on this host, and Ctrl-C ends it cleanly.
func TestRunServesTheHost(t *testing.T) {
	loam := command(t)
	for _, c := range []struct {
		platform, machine string
		size              int64 // size of the fetched page in bytes
	}{
		{"process", "q35", 32 << 20},
		{"vm", "q35", 4 << 20},
		{"vm", "microvm", 4 << 20},
	} {
		t.Run(c.platform+" "+c.machine, func(t *testing.T) {
			testServesTheHost(t, c.size, func(args ...string) *exec.Cmd {
				return loam(append([]string{"run", "--platform", c.platform, "--machine", c.machine}, args...)...)
			})
		})
	}
}

func testServesTheHost(t *testing.T, size int64, run func(args ...string) *exec.Cmd) {
	port := freePort(t)
	cmd := run("-p", fmt.Sprintf("%d:8080", port), "../../examples/web")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()

	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	stats := fetchWhenUp(t, url+"/stats", ended, &log)
	if !strings.Contains(stats, "eth0 10.0.2.15/24") {
		t.Errorf("the program sees other interfaces than Loam's: %s", stats)
	}
	r, err := http.Get(fmt.Sprint(url, "/bytes/", size))
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, r.Body)
	if r.Body.Close(); n != size || err != nil {
		t.Errorf("received %d bytes of %d, %v", n, size, err)
	}
	up, err := http.Post(url+"/upload", "application/octet-stream", bytes.NewReader(make([]byte, size/4)))
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(up.Body)
	if up.Body.Close(); strings.TrimSpace(string(answer)) != fmt.Sprint(size/4) {
		t.Errorf("the server counts %q bytes of %d", answer, size/4)
	}
	cmd.Process.Signal(os.Interrupt)
	if err := <-ended; err != nil {
		t.Errorf("after Ctrl-C: %v\n%s", err, &log)
	}
	if !strings.Contains(log.String(), "served") {
		t.Errorf("the program did not end in order:\n%s", &log)
	}
}

// fetchWhenUp fetches a page as soon as the server is up.
func fetchWhenUp(t *testing.T, url string, ended <-chan error, log *bytes.Buffer) string {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := http.Get(url)
		if err == nil {
			defer r.Body.Close()
			b, _ := io.ReadAll(r.Body)
			return string(b)
		}
		select {
		case err := <-ended:
			t.Fatalf("the server ended: %v\n%s", err, log)
		case <-tick.C:
		}
	}
}

// The standard streams, arguments, environment and exit status are passed through to the program.
func TestRunIsTransparent(t *testing.T) {
	loam := command(t)
	main := program(t, `package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	b, _ := io.ReadAll(os.Stdin)
	fmt.Printf("%s %q %s", b, os.Args[1:], os.Getenv("COLOUR"))
	fmt.Fprint(os.Stderr, "to stderr")
	os.Exit(42)
}
`)
	for _, platform := range []string{"process", "vm"} {
		t.Run(platform, func(t *testing.T) {
			testTransparent(t, loam("run", "--platform", platform, "--net", "none", "-e", "COLOUR=blue", main, "--", "-x", "two words"))
		})
	}
}

func testTransparent(t *testing.T, cmd *exec.Cmd) {
	cmd.Stdin = strings.NewReader("from stdin")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if status := cmd.ProcessState.ExitCode(); status != 42 {
		t.Errorf("exit status %d, want 42 (%v)", status, err)
	}
	if want := `from stdin ["-x" "two words"] blue`; out.String() != want {
		t.Errorf("standard output %q, want %q", &out, want)
	}
	if errs.String() != "to stderr" {
		t.Errorf("standard error %q", &errs)
	}
}

// If the program is killed, the command has the exit status that shells report.
func TestRunDeathBySignal(t *testing.T) {
	loam := command(t)
	main := program(t, `package main

import (
	"os"
	"syscall"
)

func main() { syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }
`)
	cmd := loam("run", "--platform", "process", "--net", "none", main)
	cmd.Run()
	if status := cmd.ProcessState.ExitCode(); status != 128+int(syscall.SIGKILL) {
		t.Errorf("exit status %d, want %d", status, 128+int(syscall.SIGKILL))
	}
}

// A user's mistake is reported in one line that says what to do, with status 2.
func TestRunRefusals(t *testing.T) {
	loam := command(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	hello := program(t, "package main\n\nfunc main() {}\n")
	for _, c := range []struct {
		name string
		args []string
		want string // text that the last line contains
	}{
		{"no such folder", []string{"./nowhere"}, "nowhere"},
		{"no such file", []string{"nowhere.go"}, "nowhere.go"},
		{"not a command", []string{program(t, "package other\n")}, "main"},
		{"busy port", []string{"-p", fmt.Sprintf("%d:80", l.Addr().(*net.TCPAddr).Port), hello}, l.Addr().String() + " of the host is taken"},
		{"bad port", []string{"-p", "80", hello}, "HOST:GUEST"},
		{"bad network", []string{"--net", "carrier-pigeon", hello}, "--net user"},
		{"bad flag", []string{"--nett", "user", hello}, "--help"},
		{"pcap cannot be written", []string{"--pcap", "/nowhere/x.pcapng", hello}, "/nowhere/x.pcapng"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := loam(append([]string{"run", "--platform", "process"}, c.args...)...)
			out, _ := cmd.CombinedOutput()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			last := lines[len(lines)-1]
			if status := cmd.ProcessState.ExitCode(); status != 2 {
				t.Errorf("exit status %d, want 2", status)
			}
			if !strings.HasPrefix(last, "loam: ") || !strings.Contains(last, c.want) {
				t.Errorf("the last line is %q; it should begin with \"loam: \" and say %q", last, c.want)
			}
		})
	}
}

// If a program does not build, the go command's messages and exit status are passed on. loam adds a line only if it
// has something to add.
func TestRunBuildError(t *testing.T) {
	loam := command(t)
	for name, c := range map[string]struct{ source, want, last string }{
		"does not compile": {"package main\n\nfunc main() { x }\n", "/main.go:3:15: undefined: x\n", ""},
		"left out":         {"//go:build windows\n\npackage main\n\nfunc main() {}\n", ": build constraints exclude all Go files in ", ""},
		"no files":         {"", "no Go files in ", ""},
		"needs cgo":        {"package main\n\nimport \"C\"\n\nfunc main() {}\n", ": build constraints exclude all Go files in ", "it needs cgo"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.24\n", "main.go": c.source} {
				if text == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cmd := loam("run", "--platform", "process", dir)
			b, _ := cmd.CombinedOutput()
			out := string(b)
			if status := cmd.ProcessState.ExitCode(); status != 1 || !strings.Contains(out, c.want) || strings.Contains(out, "undeclared") {
				t.Errorf("exit status %d\n%s\nwant 1, and %q", status, out, c.want)
			}
			if _, line, told := strings.Cut(out, "loam: "); told != (c.last != "") || !strings.Contains(line, c.last) {
				t.Errorf("the last line of\n%s\nis to say %q", out, c.last)
			}
		})
	}
}

// loam test runs the tests of a module on Loam, in the folder of their package. The output and the exit status are the
// same as with go test.
func TestTestIsGoTest(t *testing.T) {
	loam := command(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/m\n\ngo 1.24\n",
		"m.go":      "package m\n\nfunc Half(n int) int { return n / 2 }\n",
		"bare/b.go": "package bare\n",
		"file.txt":  "of the package",
		"m_test.go": `package m

import (
	"flag"
	"net"
	"os"
	"slices"
	"testing"
)

func TestNetwork(t *testing.T) {
	Half(2)
	ifs, err := net.InterfaceByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := ifs.Addrs()
	leased := func(a net.Addr) bool { return a.String() == "10.0.2.15/24" }
	if err != nil || !slices.ContainsFunc(addrs, leased) {
		t.Errorf("eth0 has %v, %v", addrs, err)
	}
	if _, err := os.Stat("file.txt"); err != nil {
		t.Error(err)
	}
}

func TestFails(t *testing.T) { t.Error("on purpose", flag.Args(), os.Getenv("COLOUR")) }
`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, platform := range []string{"process", "vm"} {
		t.Run(platform, func(t *testing.T) {
			testIsGoTest(t, func(args ...string) *exec.Cmd {
				cmd := loam(append([]string{"test", "--platform", platform}, args...)...)
				cmd.Dir = dir
				return cmd
			})
			for _, name := range []string{"cover.out", "mem.prof"} {
				if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || len(data) == 0 {
					t.Errorf("%s: %d bytes, %v", name, len(data), err)
				}
				os.Remove(filepath.Join(dir, name))
			}
		})
	}
}

func testIsGoTest(t *testing.T, test func(args ...string) *exec.Cmd) {
	for _, c := range []struct {
		args   []string
		status int
		want   []string
	}{
		{[]string{"-run", "Network", "-v", "./..."}, 0, []string{"--- PASS: TestNetwork", "ok  \texample.com/m\t", "bare\t[no test files]"}},
		{[]string{"-e", "COLOUR=blue", "-args", "two"}, 1, []string{"--- FAIL: TestFails", "on purpose [two] blue", "FAIL\texample.com/m\t"}},
		{[]string{"-json", "-skip=Fails"}, 0, []string{`"Action":"pass","Package":"example.com/m","Test":"TestNetwork"`}},
		{[]string{"-skip=Fails", "-coverprofile=cover.out", "-memprofile=mem.prof"}, 0, []string{"coverage: 100.0% of statements"}},
		{[]string{"net/url", "-run=JoinPath"}, 0, []string{"ok  \tnet/url\t"}},
		// its test reads a file of the parent folder
		{[]string{"io/ioutil", "-run=^TestReadDir$"}, 0, []string{"ok  \tio/ioutil\t"}},
		// Loam imports package time; an init function of its tests reads a file
		{[]string{"time", "-run=^TestLoadFixed$"}, 0, []string{"ok  \ttime\t"}},
	} {
		cmd := test(c.args...)
		out, _ := cmd.CombinedOutput()
		if status := cmd.ProcessState.ExitCode(); status != c.status {
			t.Errorf("loam test %q: exit status %d, want %d\n%s", c.args, status, c.status, out)
		}
		for _, want := range c.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("loam test %q does not print %q:\n%s", c.args, want, out)
			}
		}
	}
}
