package unikernel

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Tests that start other programs, or start themselves. All test binaries of one `go test` have the same overlay, so package
// children is linked into all of them or into none. The linked functions do not show whether it is needed: each test binary
// contains syscall.forkExec, because package testing starts workers for fuzzing. Therefore the imports of the tested
// packages decide. The command that runs a test binary (RunProgram) builds the plain one, with the flags in plainFlags.

// plainFlags is the environment variable with the flags for building a plain test binary, in JSON. Tests do not see it.
const plainFlags = "LOAM_TEST_FLAGS"

// testStarts reports whether tests of packages start programs. They do if a package that they import imports os/exec (the
// imports of package testing do not count), or if a package outside the standard library calls os.StartProcess or
// syscall.ForkExec.
func testStarts(ctx context.Context, t *toolchain, dir string, flags, packages []string) bool {
	const format = "{{.ImportPath}}\t{{if not .Standard}}{{.Dir}}{{end}}\t{{join .Imports \" \"}}"
	args := append([]string{"list", "-e", "-test", "-deps", "-f", format}, choosing(flags)...)
	out, err := t.run(ctx, dir, append(args, packages...)...)
	if err != nil {
		return false // go test reports the error
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 || fields[0] == "internal/fuzz" {
			continue
		}
		if slices.Contains(strings.Fields(fields[2]), "os/exec") {
			return true
		}
		if folder := fields[1]; folder != "" && (mentions(folder, "StartProcess(") || mentions(folder, "ForkExec(")) {
			return true
		}
	}
	return false
}

// withPlainFlags returns the environment for go test in which RunProgram finds the flags.
func withPlainFlags(env, flags []string) []string {
	var build []string
	for _, f := range flags {
		switch name, _, _ := strings.Cut(f, "="); name {
		case "-tags", "-mod", "-modfile", "-ldflags", "-gcflags", "-asmflags", "-trimpath", "-pgo", "-overlay":
			build = append(build, f)
		}
	}
	text, err := json.Marshal(build)
	if err != nil {
		panic(err) // a list of strings can always be encoded
	}
	return append(slices.Clip(env), plainFlags+"="+string(text))
}

// plainTest builds the test binary of a folder for Linux, and returns its path. The caller removes its folder. The path is
// empty if the test binary that is run starts no programs.
func plainTest(ctx context.Context, program, folder string) (path string, err error) {
	text, there := os.LookupEnv(plainFlags)
	os.Unsetenv(plainFlags)
	if !there {
		return "", nil
	}
	if starts, err := defines(program, guestModule+childrenPackage+".start"); err != nil || !starts {
		return "", err
	}
	var flags []string
	if err := json.Unmarshal([]byte(text), &flags); err != nil {
		return "", err
	}
	c, err := openCache()
	if err != nil {
		return "", err
	}
	t, err := findToolchain(ctx, c, folder)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "loam-")
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, filepath.Base(program))
	if _, err = t.run(ctx, folder, append(append([]string{"test", "-c", "-o", path}, flags...), ".")...); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return path, nil
}
