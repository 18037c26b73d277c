package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// debian lists the programs that tests and demonstrations call, and the package
// of Debian 12 that has each.
var debian = []struct {
	file string // a name to look up in PATH, or a path
	pkg  string
	why  string
}{
	{"gcc", "gcc", "the race detector links with it"},
	{"/usr/include/stdlib.h", "libc6-dev", "the race detector links with it"},
	{"/etc/ssl/certs/ca-certificates.crt", "ca-certificates", "modules are fetched over TLS"},
	{"git", "git", "the go command asks it for the version"},
	{"ip", "iproute2", "tests make network namespaces with it"},
	{"curl", "curl", "a client that is not ours"},
	{"tshark", "tshark", "a judge of packets that is not ours"},
	{"tcpdump", "tcpdump", "writes down what the kernel sees"},
	{"ping", "iputils-ping", "asks our stack, as everybody does"},
	{"arping", "iputils-arping", "the same at the link layer"},
	{"traceroute", "traceroute", "finds our stack by closed ports"},
	{"wrk", "wrk", "loads HTTP servers"},
	{"dnsperf", "dnsperf", "loads DNS servers"},
	{"qemu-system-x86_64", "qemu-system-x86", "boots what was linked for a virtual machine"},
}

// installPackages installs what is missing if that is possible. Where it is
// not, it says what is missing and goes on: the tests that need it will be
// skipped, and the step "test" decides whether that may be.
func installPackages(ctx context.Context) error {
	// Debian leaves sbin, where ip is, out of the path of ordinary users.
	os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	var missing []string
	for _, p := range debian {
		if !present(p.file) {
			fmt.Printf("%s is missing: %s\n", p.pkg, p.why)
			missing = append(missing, p.pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if os.Getuid() != 0 || !present("apt-get") {
		fmt.Printf("not installed (not root, or not Debian); to do it yourself: apt-get install %s\n", strings.Join(missing, " "))
		return nil
	}
	os.Setenv("DEBIAN_FRONTEND", "noninteractive") // tshark would ask a question
	install := append([]string{"install", "-q", "-y", "--no-install-recommends"}, missing...)
	for _, args := range [][]string{{"update", "-q"}, install} {
		if out, err := output(ctx, "", "apt-get", args...); err != nil {
			os.Stdout.Write(out)
			return err
		}
	}
	return nil
}

func present(file string) bool {
	if strings.HasPrefix(file, "/") {
		_, err := os.Stat(file)
		return err == nil
	}
	_, err := exec.LookPath(file)
	return err == nil
}
