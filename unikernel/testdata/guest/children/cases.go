package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// me returns a command that starts this program as a helper.
func me(args ...string) *exec.Cmd { return exec.Command(must(os.Executable()), args...) }

func output() {
	fmt.Printf("%q\n", must(exec.Command("/bin/echo", "hello", "there").Output()))
	cmd := exec.Command("/bin/sh", "-c", "echo out; echo err >&2; echo out again")
	fmt.Printf("%q\n", must(cmd.CombinedOutput()))
	cmd = exec.Command("/bin/sh", "-c", "echo straight on")
	cmd.Stdout = os.Stdout
	none(cmd.Run())
	big := must(exec.Command("/bin/sh", "-c", "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done").Output())
	fmt.Println(len(big), bytes.Count(big, []byte("\n")))
}

func input() {
	cmd := exec.Command("/bin/cat")
	cmd.Stdin = strings.NewReader(strings.Repeat("0123456789", 20000))
	fmt.Println(len(must(cmd.Output())))
	cmd = exec.Command("/bin/cat")
	in, out := must(cmd.StdinPipe()), must(cmd.StdoutPipe())
	none(cmd.Start())
	buf := make([]byte, 64)
	for _, word := range []string{"ping", "pong"} {
		must(io.WriteString(in, word))
		n := must(out.Read(buf))
		fmt.Printf("%q\n", buf[:n])
	}
	in.Close()
	rest := must(io.ReadAll(out))
	fmt.Println(len(rest), cmd.Wait())
}

func extraFiles() {
	r, w, err := os.Pipe()
	none(err)
	cmd := me("read3")
	cmd.ExtraFiles = []*os.File{r, nil}
	cmd.Stdout = os.Stdout
	none(cmd.Start())
	r.Close()
	must(io.WriteString(w, "by descriptor 3"))
	w.Close()
	fmt.Println(cmd.Wait())
}

func place() {
	cmd := me("where")
	cmd.Dir = "/tmp"
	cmd.Env = []string{"ONE=1", "TWO=two words", "PWD=/tmp"}
	fmt.Printf("%s", must(cmd.CombinedOutput()))
	cmd = me("where")
	cmd.Dir, cmd.Env = "/nowhere", []string{}
	fmt.Println(cmd.Run())
}

func status() {
	for _, script := range []string{"exit 0", "exit 3", "exit 255", "kill -TERM $$", "kill -SEGV $$"} {
		cmd := exec.Command("/bin/sh", "-c", script)
		err := cmd.Run()
		var exit *exec.ExitError
		fmt.Println(script, "->", err, errors.As(err, &exit), cmd.ProcessState.ExitCode(), cmd.ProcessState.Exited())
	}
	cmd := exec.Command("/bin/sh", "-c", "echo said >&2; exit 1")
	_, err := cmd.Output()
	fmt.Printf("%q %v\n", err.(*exec.ExitError).Stderr, cmd.ProcessState)
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	fmt.Println(cmd.ProcessState.Pid() > 1, cmd.ProcessState.UserTime() >= 0, usage.Maxrss > 0)
	fmt.Println(cmd.Wait())
	fmt.Println(cmd.Process.Signal(syscall.SIGTERM), cmd.Process.Kill())
}

func signals() {
	for _, s := range []os.Signal{os.Kill, syscall.SIGTERM, os.Interrupt, syscall.SIGUSR1} {
		cmd := exec.Command("/bin/sleep", "100")
		none(cmd.Start())
		none(cmd.Process.Signal(syscall.Signal(0)))
		none(cmd.Process.Signal(s))
		fmt.Println(s, "->", cmd.Wait())
	}
	cmd := me("handle")
	out := must(cmd.StdoutPipe())
	none(cmd.Start())
	buf := make([]byte, 64)
	fmt.Printf("%q\n", buf[:must(out.Read(buf))])
	none(cmd.Process.Signal(syscall.SIGUSR1))
	fmt.Printf("%q\n", must(io.ReadAll(out)))
	fmt.Println(cmd.Wait())
	var ws syscall.WaitStatus
	cmd = exec.Command("/bin/sleep", "100")
	none(cmd.Start())
	none(cmd.Process.Signal(syscall.SIGSTOP))
	must(syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil))
	fmt.Println(ws.Stopped(), ws.StopSignal())
	none(cmd.Process.Signal(syscall.SIGCONT))
	must(syscall.Wait4(cmd.Process.Pid, &ws, syscall.WCONTINUED, nil))
	fmt.Println(ws.Continued())
	none(cmd.Process.Kill())
	fmt.Println(cmd.Wait())
	_, err := syscall.Wait4(-1, &ws, 0, nil)
	fmt.Println(err, syscall.Kill(cmd.Process.Pid, 0))
}

func cancel() {
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "/bin/sleep", "100")
	none(cmd.Start())
	stop()
	fmt.Println(cmd.Wait(), ctx.Err())
	ctx, stop = context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	cmd = exec.CommandContext(ctx, "/bin/sleep", "100")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	fmt.Println(cmd.Run(), ctx.Err())
}

func lookup() {
	os.Setenv("PATH", "/nowhere:/bin")
	fmt.Println(exec.LookPath("cat"))
	fmt.Println(exec.LookPath("no-such-program"))
	fmt.Printf("%q\n", must(exec.Command("echo", "by PATH").Output()))
	fmt.Println(exec.Command("no-such-program").Run())
}

// temporary returns a file with a content and a mode in a folder of its own.
func temporary(name, content string, mode os.FileMode) string {
	dir := must(os.MkdirTemp("/tmp", ""))
	path := filepath.Join(dir, name)
	none(os.WriteFile(path, []byte(content), mode))
	return path
}

func refusals() {
	show := func(err error) {
		var e *os.PathError
		if errors.As(err, &e) {
			e.Path = filepath.Base(e.Path)
		}
		fmt.Println(err, errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission))
	}
	show(exec.Command("/nowhere/program").Run())
	show(exec.Command(temporary("plain", "text", 0o644)).Run())
	show(exec.Command(temporary("text", "echo no format", 0o755)).Run())
	show(exec.Command(temporary("script", "#!/nowhere/interpreter\n", 0o755)).Run())
	show(exec.Command("/tmp").Run())
	_, err := os.StartProcess("/bin/echo", []string{"echo"}, &os.ProcAttr{Files: []*os.File{os.NewFile(99, "closed")}})
	show(err)
	_, err = syscall.ForkExec("/bin/echo", []string{"echo", "a\x00b"}, nil)
	show(err)
	_, err = syscall.ForkExec("/bin/echo", []string{"echo"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Setpgid: true, Pgid: 99999}})
	show(err)
	var ws syscall.WaitStatus
	_, err = syscall.Wait4(-1, &ws, 0, nil)
	fmt.Println("no child is left:", err)
}

func scripts() {
	path := temporary("script", "#!/bin/sh\necho $1 and $2\nexit 7\n", 0o755)
	out, err := exec.Command(path, "one", "two").Output()
	fmt.Printf("%q %v\n", out, err)
}

func groups() {
	cmd := exec.Command("/bin/sh", "-c", "sleep 100 & echo started; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out := must(cmd.StdoutPipe())
	none(cmd.Start())
	must(out.Read(make([]byte, 64)))
	pgid := must(syscall.Getpgid(cmd.Process.Pid))
	fmt.Println(pgid == cmd.Process.Pid, pgid == syscall.Getpgrp())
	none(syscall.Kill(-pgid, syscall.SIGKILL))
	fmt.Println(cmd.Wait())
	cmd = me("ids")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	fmt.Printf("%s", must(cmd.Output()))
	fmt.Printf("%s", must(me("ids").Output()))
}

func user() {
	// The folder of the program may be private to its user.
	path := temporary("copy", string(must(os.ReadFile(must(os.Executable())))), 0o755)
	none(os.Chmod(filepath.Dir(path), 0o755))
	cmd := exec.Command(path, "user")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1001, Groups: []uint32{7, 8}}}
	cmd.Dir = "/"
	fmt.Printf("%s", must(cmd.CombinedOutput()))
}

func sharedFile() {
	path := temporary("log", "", 0o644)
	f := must(os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0))
	defer f.Close()
	must(f.WriteString("parent\n"))
	cmd := exec.Command("/bin/sh", "-c", "echo child; echo later >> "+path)
	cmd.Stdout = f
	none(cmd.Run())
	must(f.WriteString("parent again\n"))
	fmt.Printf("%q\n", must(os.ReadFile(path)))
	must(f.Seek(7, io.SeekStart))
	cmd = exec.Command("/bin/sh", "-c", "read line; echo $line")
	cmd.Stdin = f
	fmt.Printf("%q\n", must(cmd.Output()))
}

func notified() {
	c := make(chan os.Signal, 16)
	signal.Notify(c, syscall.SIGCHLD)
	defer signal.Stop(c)
	none(exec.Command("/bin/sh", "-c", "exit 0").Run())
	fmt.Println(<-c)
	cmd := me("signal-parent")
	signal.Notify(c, syscall.SIGUSR2)
	none(cmd.Run())
	for s := range c {
		if s == syscall.SIGUSR2 {
			fmt.Println(s)
			return
		}
	}
}

func self() {
	path := must(os.Executable())
	fmt.Println(path == os.Args[0], must(os.Stat(path)).Mode().IsRegular())
	out := must(exec.Command(os.Args[0], "echo", "me").Output())
	fmt.Printf("%q\n", out)
	out = must(exec.Command("/proc/self/exe", "echo", "by /proc").Output())
	fmt.Printf("%q\n", out)
	out = must(me("start", path, "echo", "a child of a child").Output())
	fmt.Printf("%q\n", out)
}

// many starts 200 programs in a row. On Loam it checks that memory does not become less.
func many() {
	free := func() uint64 {
		var s syscall.Sysinfo_t
		none(syscall.Sysinfo(&s))
		return s.Freeram
	}
	run := func(n int) {
		for range n {
			none(exec.Command("/bin/true").Run())
		}
	}
	run(20)
	before, open := free(), len(must(os.ReadDir("/proc/self/fd")))
	run(200)
	if after := free(); os.Getpid() == 1 && after+8<<20 < before {
		fmt.Println("memory:", before, after)
	}
	fmt.Println(max(0, len(must(os.ReadDir("/proc/self/fd")))-open)) // a finalizer may close a file meanwhile
	done := make(chan error)
	for range 20 {
		go func() { done <- exec.Command("/bin/true").Run() }()
	}
	for range 20 {
		none(<-done)
	}
}
