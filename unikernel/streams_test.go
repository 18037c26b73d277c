package unikernel

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// On both platforms, a program uses the standard streams of the loam command.

func onBoth(t *testing.T, test func(t *testing.T, command func(args ...string) *exec.Cmd)) {
	for _, p := range []Platform{Process, Machine} {
		t.Run(p.String(), func(t *testing.T) {
			test(t, func(args ...string) *exec.Cmd {
				if p == Machine {
					return machineCommand(NoNetwork, "streams", args...)
				}
				return guestCommand(NoNetwork, "streams", args...)
			})
		})
	}
}

// Large amounts of arbitrary bytes pass unchanged in both directions.
func TestStreamsAreClean(t *testing.T) {
	data := make([]byte, 10<<20)
	rand.NewChaCha8([32]byte{7}).Read(data)
	onBoth(t, func(t *testing.T, command func(args ...string) *exec.Cmd) {
		cmd := command("copy")
		cmd.Stdin = bytes.NewReader(data)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), data) {
			t.Errorf("%d bytes came out of %d, or others", out.Len(), len(data))
		}
		if want := fmt.Sprint(string(data), len(data)); errs.String() != want {
			t.Errorf("%d bytes came to standard error, or others", errs.Len())
		}
	})
}

// Input from a file arrives completely, followed by end of file. The same holds for an empty file.
func TestStreamsInput(t *testing.T) {
	onBoth(t, func(t *testing.T, command func(args ...string) *exec.Cmd) {
		for _, text := range []string{"", "hi\n"} {
			cmd := command("hash")
			cmd.Stdin = strings.NewReader(text)
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != fmt.Sprintf("%x\n", sha256.Sum256([]byte(text))) {
				t.Errorf("%q: %v: %s", text, err, out)
			}
		}
	})
}

// Input that a program does not read stays for the next reader.
func TestStreamsReadNoFurther(t *testing.T) {
	onBoth(t, func(t *testing.T, command func(args ...string) *exec.Cmd) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		io.WriteString(w, "mine"+"another's")
		w.Close()
		cmd := command("some", "mine")
		cmd.Stdin = r
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "true\n" {
			t.Errorf("%v: %s", err, out)
		}
		if rest, err := io.ReadAll(r); string(rest) != "another's" || err != nil {
			t.Errorf("left: %q, %v", rest, err)
		}
	})
}

// A slow reader of the output blocks the program, and no output is lost.
func TestStreamsBackPressure(t *testing.T) {
	const size = 4 << 20
	onBoth(t, func(t *testing.T, command func(args ...string) *exec.Cmd) {
		cmd := command("write", fmt.Sprint(size))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Process.Kill()
		first := make([]byte, 1)
		if _, err := io.ReadFull(out, first); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(out)
		if len(rest) != size-1 || err != nil {
			t.Errorf("%d bytes, %v", 1+len(rest), err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// If both outputs are the same file, output keeps its order, including output of the runtime.
func TestStreamsKeepOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, command func(args ...string) *exec.Cmd) {
		out, _ := command("order").CombinedOutput()
		var want strings.Builder
		for i := range 20 {
			fmt.Fprintf(&want, "%d\n%d\n%d\n", i, i, i)
		}
		want.WriteString("panic: last\n")
		if !strings.HasPrefix(string(out), want.String()) {
			t.Errorf("%s", out)
		}
	})
}

// A program continues to run while one of its goroutines waits for input.
func TestStreamsWaiting(t *testing.T) {
	onBoth(t, func(t *testing.T, command func(args ...string) *exec.Cmd) {
		cmd := command("idle")
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Process.Kill()
		lines := bufio.NewScanner(out)
		for lines.Scan() && lines.Text() != "ready" {
		}
		io.WriteString(in, "typed")
		in.Close()
		if !lines.Scan() || lines.Text() != "TYPED" {
			t.Errorf("%q, %v", lines.Text(), lines.Err())
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
}
