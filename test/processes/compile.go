//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The repository that the row of git clones, and the compiler for it.

// buildSources clones the repository to the disk and compiles it there.
const buildSources = `
export HOME=/tmp GIT_CONFIG_NOSYSTEM=1
/files time 'git clone of 60 files' /usr/bin/git -c safe.directory=* clone -q /sources.git /data/sources || exit 1
cd /data/sources
/files time 'compile and link 12 files of C' /usr/bin/dash -c 'for f in *.c; do /usr/bin/gcc -O1 -c $f || exit 1; done; /usr/bin/gcc -o program *.o' || exit 1
./program
`

const (
	sourceFiles = 12
	otherFiles  = 48
	functions   = 12 // in each source file
)

// addSources makes a repository with a program in C.
func (b *built) addSources(ctx context.Context) error {
	dir := filepath.Join(b.dir, "sources")
	if err := os.MkdirAll(filepath.Join(dir, "text"), 0o755); err != nil {
		return err
	}
	files := map[string]string{}
	calls, declarations := "", ""
	for i := range sourceFiles {
		var s strings.Builder
		s.WriteString("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include \"all.h\"\n\n")
		for k := range functions {
			fmt.Fprintf(&s, "int f%d_%d(int n) {\n\tchar text[64];\n\tsnprintf(text, sizeof text, \"%%d of %d\", n);\n\treturn (int)strlen(text) + n %% %d;\n}\n\n", i, k, k, k+2)
			declarations += fmt.Sprintf("int f%d_%d(int n);\n", i, k)
			calls += fmt.Sprintf("\tsum += f%d_%d(sum);\n", i, k)
		}
		files[fmt.Sprintf("file%02d.c", i)] = s.String()
	}
	files["all.h"] = declarations
	files["file00.c"] += "int main(void) {\n\tint sum = 0;\n" + calls + "\treturn sum == 0;\n}\n"
	for i := range otherFiles {
		files[fmt.Sprintf("text/page%02d.txt", i)] = strings.Repeat(fmt.Sprintf("line of page %d\n", i), 200+i)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	git := func(args ...string) error { return command(ctx, "git", append([]string{"-C", dir}, args...)...) }
	if err := git("init", "-q", "."); err != nil {
		return err
	}
	if err := git("add", "."); err != nil {
		return err
	}
	if err := git("-c", "user.name=loam", "-c", "user.email=loam@localhost", "commit", "-q", "-m", "sources"); err != nil {
		return err
	}
	return command(ctx, "git", "clone", "-q", "--bare", "--template=", dir, filepath.Join(b.root, "sources.git"))
}

// addCompiler adds the parts of gcc, the headers and the libraries that the compilation needs.
func (b *built) addCompiler(ctx context.Context) error {
	if err := os.Symlink("dash", filepath.Join(b.root, "usr/bin/sh")); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(b.root, "bin"), 0o755); err != nil {
		return err
	}
	if err := copyFile("/usr/bin/dash", filepath.Join(b.root, "bin/sh")); err != nil {
		return err
	}
	if err := copyFile("/usr/bin/git", filepath.Join(b.root, "usr/bin/git-upload-pack")); err != nil {
		return err
	}
	for _, name := range []string{"cc1", "collect2"} {
		path, err := gcc(ctx, "-print-prog-name="+name)
		if err != nil {
			return err
		}
		if err := b.add(path); err != nil {
			return err
		}
	}
	for _, name := range []string{"Scrt1.o", "crti.o", "crtbeginS.o", "crtendS.o", "crtn.o", "libgcc.a", "libgcc_s.so", "libgcc_s.so.1",
		"libc.so", "libc.so.6", "libc_nonshared.a", "liblto_plugin.so", "ld-linux-x86-64.so.2"} {
		path, err := gcc(ctx, "-print-file-name="+name)
		if err != nil {
			return err
		}
		if err := copyFile(path, filepath.Join(b.root, filepath.Clean(path))); err != nil {
			return err
		}
	}
	return b.addHeaders(ctx)
}

// addHeaders adds the headers that the sources include.
func (b *built) addHeaders(ctx context.Context) error {
	file := filepath.Join(b.dir, "headers.c")
	if err := os.WriteFile(file, []byte("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"), 0o644); err != nil {
		return err
	}
	list, err := gcc(ctx, "-O1", "-M", file)
	if err != nil {
		return err
	}
	for _, path := range strings.Fields(strings.ReplaceAll(list, "\\\n", " ")) {
		if !strings.HasSuffix(path, ".h") {
			continue
		}
		if err := copyFile(path, filepath.Join(b.root, filepath.Clean(path))); err != nil {
			return err
		}
	}
	return nil
}

func gcc(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "gcc", args...).Output()
	return strings.TrimSpace(string(out)), err
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}
