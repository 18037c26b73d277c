// Command pgo creates the profile with which Loam's own packages are compiled for guests
// (unikernel/guest.pgo; decision 37). It runs a server on Loam, as a process and in a virtual machine,
// loads it with wrk and curl over a tap, and keeps the calls by Loam's packages from the server's
// profiles. Run it as root, in the folder of the module; it takes three minutes.
//
// Rejected: profiles of users' programs, which belong to the users and would make the build depend on
// the machine; and profiles of tests, which call functions that are rarely called in practice.
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Names and addresses of the network, which exists only for this process and its children.
const (
	tap     = "tap0"
	host    = "10.9.0.1/24"
	program = "10.9.0.2"
	page    = "http://" + program + ":8080/"
)

const (
	result  = "unikernel/guest.pgo"
	seconds = 15 // duration of each profile
)

// platforms are the platforms that the server runs on.
var platforms = [][]string{
	{"--platform", "process"},
	{"--platform", "vm", "--cpus", "1"},
	{"--platform", "vm", "--cpus", "2"},
}

// loads are shell commands that load the server.
var loads = []string{
	fmt.Sprintf("wrk -t1 -c1 -d%d %s", seconds, page),
	fmt.Sprintf("wrk -t1 -c16 -d%d %s", seconds, page),
	fmt.Sprintf("timeout %d sh -c 'while curl -so /dev/null %sbulk && head -c 64M /dev/zero | curl -so /dev/null -T- -XPOST %sbulk; do :; done' || true", seconds, page, page),
}

func main() {
	log.SetFlags(0)
	dir, err := os.MkdirTemp("", "loam-pgo-")
	if err == nil {
		err = run(dir)
		os.RemoveAll(dir)
	}
	if err != nil {
		log.Fatal("pgo: ", err)
	}
}

// run takes the profiles and writes the result. dir is a temporary folder.
func run(dir string) error {
	runtime.LockOSThread() // because Unshare changes only the network namespace of this thread
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		return fmt.Errorf("run it as root: %w", err)
	}
	for _, c := range []string{
		"ip link set lo up", "ip tuntap add dev " + tap + " mode tap", "ip addr add " + host + " dev " + tap, "ip link set " + tap + " up",
		"go build -o " + dir + "/loam ./cmd/loam",
	} {
		if err := shell(c); err != nil {
			return err
		}
	}
	var profiles []string
	for i, p := range platforms {
		taken, err := profile(dir, p, fmt.Sprintf("%s/%d-", dir, i))
		if err != nil {
			return err
		}
		profiles = append(profiles, taken...)
	}
	merged, edges := filepath.Join(dir, "merged"), filepath.Join(dir, "edges")
	if err := shell("go tool pprof -proto -output " + merged + " " + strings.Join(profiles, " ")); err != nil {
		return err
	}
	if err := shell("go tool preprofile -i " + merged + " -o " + edges); err != nil {
		return err
	}
	text, err := os.ReadFile(edges)
	if err != nil {
		return err
	}
	own, err := ownCalls(string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(result, []byte(own), 0o644)
}

// shell runs a command. Its output is returned only in an error.
func shell(command string) error {
	out, err := exec.Command("sh", "-c", command).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// profile runs the server once and takes a profile for each load. The names of the files begin with
// prefix.
func profile(dir string, platform []string, prefix string) (files []string, err error) {
	// The source is outside Loam's module, like a user's program.
	source := filepath.Join(dir, "main.go")
	if err := shell("cp test/pgo/program/main.go " + source); err != nil {
		return nil, err
	}
	args := append([]string{"run", "--net", "tap:" + tap, "--ip", program + "/24"}, platform...)
	server := exec.Command(filepath.Join(dir, "loam"), append(args, source)...)
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := server.Start(); err != nil {
		return nil, err
	}
	defer func() {
		server.Process.Signal(syscall.SIGTERM)
		server.Wait()
	}()
	if err := shell("curl -so /dev/null --retry 300 --retry-delay 1 --retry-all-errors --connect-timeout 1 " + page); err != nil {
		return nil, err
	}
	for i, load := range loads {
		log.Printf("%s: %s", strings.Join(platform, " "), load)
		file := fmt.Sprint(prefix, i)
		take := exec.Command("curl", "-so", file, fmt.Sprintf("%sdebug/pprof/profile?seconds=%d", page, seconds-2))
		if err := take.Start(); err != nil {
			return nil, err
		}
		if err := shell(load); err != nil {
			return nil, err
		}
		if err := take.Wait(); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// ownCalls keeps the calls by Loam's packages, under the import paths of this module.
func ownCalls(edges string) (string, error) {
	const header, inGuest, here = "GO PREPROFILE V1", "loamguest/", "loam/"
	lines := strings.Split(strings.TrimSuffix(edges, "\n"), "\n")
	if lines[0] != header || len(lines)%3 != 1 {
		return "", fmt.Errorf("go tool preprofile has another format: it begins with %q", lines[0])
	}
	var own strings.Builder
	own.WriteString(header + "\n")
	for call := lines[1:]; len(call) > 0; call = call[3:] {
		if strings.HasPrefix(call[0], inGuest) {
			for _, l := range call[:3] {
				own.WriteString(strings.ReplaceAll(l, inGuest, here) + "\n")
			}
		}
	}
	return own.String(), nil
}
