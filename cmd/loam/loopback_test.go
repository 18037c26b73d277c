//go:build !race

package main

import (
	"bytes"
	"net"
	"os/exec"
	"strings"
	"testing"
)

// A program can connect to the host's own loopback only if the user allows it. Otherwise the connection is refused, and
// a message says how to allow it.
func TestHostLoopback(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("the host's"))
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	file := program(t, `package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

func main() {
	c, err := net.DialTimeout("tcp", net.JoinHostPort("host.loam.internal", os.Args[1]), 30*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	io.Copy(os.Stdout, c)
}
`)
	platforms := []string{"process"}
	if _, err := exec.LookPath("qemu-system-x86_64"); err == nil {
		platforms = append(platforms, "vm")
	}
	loam := command(t)
	for _, platform := range platforms {
		for _, c := range []struct {
			flags        []string
			says, warned string
		}{
			{[]string{"--host-loopback"}, "the host's", ""},
			{nil, "connection refused", "--host-loopback"},
		} {
			cmd := loam(append(append([]string{"run", "--platform", platform}, c.flags...), file, "--", port)...)
			var complaints bytes.Buffer
			cmd.Stderr = &complaints
			out, err := cmd.Output()
			told := strings.Count(complaints.String(), "loam: the guest tried")
			if err != nil || !strings.Contains(string(out), c.says) || !strings.Contains(complaints.String(), c.warned) || told > 1 {
				t.Errorf("%s, %v: %v, %q, %q", platform, c.flags, err, out, &complaints)
			}
			if c.warned == "" && told > 0 {
				t.Errorf("%s, %v: %q", platform, c.flags, &complaints)
			}
		}
	}
}
