package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// packages are the packages of Debian that the root folder has in addition to those of debootstrap's minbase, and sources
// the packages whose source has the tests.
var (
	packages = []string{
		"python3", "libpython3.11-testsuite", "stress-ng", "busybox", "perl", "procps", "netbase", "iproute2", "util-linux", "bash",
		"zip", "bzip2", "xz-utils", "openssl", "ca-certificates", "locales-all", "tzdata",
	}
	sources = []string{"busybox", "perl"}
)

// makeRoot is a script with the arguments ROOT IMAGE GOROOT PACKAGES SOURCES.
//
//go:embed testdata/root.sh
var makeRoot string

// image returns the path of the root's image, which it makes if there is none.
func image(ctx context.Context) (string, error) {
	if os.Getuid() != 0 {
		return "", fmt.Errorf("debootstrap needs root: run as root")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	args := []string{goroot(ctx), strings.Join(packages, " "), strings.Join(sources, " ")}
	sum := sha256.Sum256([]byte(makeRoot + strings.Join(args, "\n") + runtime.Version()))
	name := filepath.Join(cache, "loam-ci", "suites-"+hex.EncodeToString(sum[:6])+".ext4")
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	fmt.Println("making the root folder, which takes some minutes")
	return name, makeImage(ctx, name, args)
}

// goroot returns the root of the Go installation whose tests are built.
func goroot(ctx context.Context) string {
	out, _ := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	return strings.TrimSpace(string(out))
}

// makeImage makes an image that appears under its name when it is complete. Processes of the installation end with it.
func makeImage(ctx context.Context, name string, args []string) error {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(dir, "root-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	root, made := filepath.Join(work, "root"), filepath.Join(work, "image")
	cmd := exec.CommandContext(ctx, "unshare", append([]string{"--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child",
		"sh", "-c", makeRoot, "root.sh", root, made}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the root folder: %w\n%s", err, out)
	}
	return os.Rename(made, name)
}
