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

	"loam/internal/debian"
)

// packages are the packages of Debian that the root folder has in addition to those of debootstrap's minbase, and
// sources are the packages whose source code contains the tests.
var (
	packages = []string{
		"python3", "libpython3.11-testsuite", "stress-ng", "busybox", "perl", "procps", "netbase", "iproute2", "util-linux", "bash",
		"zip", "bzip2", "xz-utils", "openssl", "ca-certificates", "locales-all", "tzdata",
	}
	sources = []string{"busybox", "perl", "glibc"}
)

// makeRoot is a script with the arguments ROOT IMAGE GOROOT PACKAGES SOURCES.
//
//go:embed testdata/root.sh
var makeRoot string

// image returns the path of the image of the root folder. It makes the image if there is none.
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
	return name, debian.MakeRoot(ctx, name, makeRoot, args...)
}

// goroot returns the root of the Go installation whose tests are built.
func goroot(ctx context.Context) string {
	out, _ := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	return strings.TrimSpace(string(out))
}
