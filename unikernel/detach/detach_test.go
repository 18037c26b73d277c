package detach

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test program starts itself again. It runs as the caller if scenario is set, and as the process in the background if
// Start has started it.
const scenario = "LOAM_TEST_SCENARIO"

func TestMain(m *testing.M) {
	what := os.Getenv(scenario)
	if p := Child(); p != nil {
		os.Exit(background(p, what))
	}
	if what != "" {
		os.Exit(caller())
	}
	os.Exit(m.Run())
}

// caller calls Start and prints its result.
func caller() int {
	name, status, err := Start(context.Background(), func(context.Context) os.Signal { return os.Interrupt })
	fmt.Printf("%q %d %v\n", name, status, err)
	return 0
}

// output is the file to which the process in the background diverts its output.
const output = "output"

// background is the process in the background.
func background(p *Process, what string) int {
	if os.Getenv(variable) != "" || syscall.Getpgrp() != os.Getpid() {
		return 99
	}
	f, err := os.Create(output)
	if err != nil {
		return 98
	}
	if what == "failing" {
		fmt.Fprintln(p.Errors(), "it fails")
		return 7
	}
	if what == "waiting" {
		fmt.Fprintln(p.Errors(), "waiting")
		time.Sleep(time.Hour) // not select {}: the runtime would report a deadlock before the signal arrives
	}
	if err := p.Divert(f); err != nil {
		return 97
	}
	fmt.Println("to stdout")
	fmt.Fprintln(p.Errors(), "before")
	cmd := exec.Command("sh", "-c", "echo from sh >&2; sleep 1000 & echo $!") // sleep keeps the pipe open
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Run()
	if err := p.Started("name"); err != nil {
		return 96
	}
	fmt.Println(strings.Repeat("x", 300_000))
	if err := p.Finish(); err != nil {
		return 95
	}
	fmt.Println("to nobody")
	f.WriteString("end\n")
	return 0
}

// call runs a scenario in a folder, and returns what the caller and the process in the background have printed.
func call(t *testing.T, what, dir string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Dir, cmd.Env = dir, append(os.Environ(), scenario+"="+what)
	out, err := cmd.CombinedOutput() // returns when no process has the pipe any more
	if err != nil {
		t.Errorf("%v", err)
	}
	return string(out)
}

// The process in the background gives up the caller's streams, and all output reaches its own writer, in order.
func TestStarted(t *testing.T) {
	dir := t.TempDir()
	if got := call(t, "started", dir); got != "before\n\"name\" 0 <nil>\n" {
		t.Errorf("%q", got)
	}
	var got []byte
	for !bytes.HasSuffix(got, []byte("end\n")) { // bounded by the time limit of the test
		time.Sleep(10 * time.Millisecond)
		got, _ = os.ReadFile(filepath.Join(dir, output))
	}
	lines := strings.Split(string(got), "\n")
	var sleep int
	fmt.Sscan(lines[min(2, len(lines)-1)], &sleep)
	if sleep > 1 {
		syscall.Kill(sleep, syscall.SIGKILL)
	}
	if len(lines) != 6 || lines[0] != "to stdout" || lines[1] != "from sh" || len(lines[3]) != 300_000 {
		t.Errorf("%d lines: %.200q", len(lines), lines)
	}
}

func TestFailing(t *testing.T) {
	if got := call(t, "failing", t.TempDir()); got != "it fails\n\"\" 7 <nil>\n" {
		t.Errorf("%q", got)
	}
}

// If the caller is killed before the start, the process in the background ends.
func TestKilledCaller(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Dir, cmd.Env, cmd.Stderr = t.TempDir(), append(os.Environ(), scenario+"=waiting"), w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	line := make([]byte, len("waiting\n"))
	if _, err := r.Read(line); err != nil || string(line) != "waiting\n" {
		t.Errorf("%q, %v", line, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if n, err := r.Read(line); n != 0 || err == nil { // the end of the pipe: no process has it
		t.Errorf("%q, %v", line[:n], err)
	}
}
