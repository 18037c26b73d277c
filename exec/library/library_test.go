package library

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ldd returns the libraries that the host's ld.so finds, by name. ok is false if the file is not a dynamically linked
// program.
func ldd(t *testing.T, program string) (libraries map[string]string, ok bool) {
	c := exec.Command("ldd", program)
	c.Env = []string{"PATH=/usr/bin:/bin"}
	out, err := c.Output()
	if err != nil || bytes.Contains(out, []byte("statically linked")) {
		return nil, false
	}
	libraries = map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, rest, found := strings.Cut(strings.TrimSpace(line), " => "); found {
			p, _, _ := strings.Cut(rest, " (")
			libraries[name] = p
		} else if p, _, found := strings.Cut(strings.TrimSpace(line), " ("); found && strings.HasPrefix(p, "/") && !strings.Contains(p, "/ld-linux") {
			libraries[p] = p
		}
	}
	return libraries, true
}

// TestAsLdd: for programs and libraries of this machine, this package finds the same files as the dynamic loader of
// the host.
func TestAsLdd(t *testing.T) {
	var files []string
	for _, pattern := range []string{"/usr/bin/*", "/usr/sbin/*", "/usr/lib/systemd/*", "/usr/lib/x86_64-linux-gnu/*.so", "/usr/local/bin/*", "/usr/lib/jvm/*/bin/*"} {
		found, _ := filepath.Glob(pattern)
		files = append(files, spread(found, 60)...)
	}
	compared := 0
	for _, file := range files {
		want, ok := ldd(t, file)
		if !ok {
			continue
		}
		needs, err := Host{}.Find(file)
		if err != nil {
			if !slices.Contains(slices.Collect(values(want)), "not found") {
				t.Errorf("%v; ldd finds %v", err, want)
			}
			continue
		}
		compared++
		got := map[string]string{}
		for _, l := range needs.Libraries {
			got[l.Name] = l.Path
		}
		delete(got, "ld-linux-x86-64.so.2") // a library names no loader, and ldd shows the loader in another form
		for name, p := range want {
			if !sameFile(got[name], p) {
				t.Errorf("%s: %s is %q, by ldd %q", file, name, got[name], p)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d libraries, by ldd %d: %v, %v", file, len(got), len(want), got, want)
		}
	}
	if compared < 50 {
		t.Errorf("only %d programs compared", compared)
	}
	t.Logf("%d programs compared", compared)
}

func values(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

// spread returns at most n of the elements, evenly.
func spread(all []string, n int) (some []string) {
	step := max(1, len(all)/n)
	for i := 0; i < len(all); i += step {
		some = append(some, all[i])
	}
	return some
}

func sameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// TestRefusals: an error is one line that states the problem and the remedy.
func TestRefusals(t *testing.T) {
	good, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	put := func(offset int, b ...byte) []byte {
		f := bytes.Clone(good)
		copy(f[offset:], b)
		return f
	}
	dir := t.TempDir()
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"text":    {[]byte("#!/bin/sh\necho\n"), "it is no ELF file: give a Go package, or an ELF program of Linux"},
		"arm":     {put(18, 183), "it is for another processor (EM_AARCH64): Loam runs 64-bit programs for x86-64"},
		"small":   {put(4, 1), "it is a 32-bit program: Loam runs 64-bit programs for x86-64"},
		"damaged": {good[:70], "its headers are damaged: install it anew"},
		"missing": {bytes.ReplaceAll(good, []byte("libc.so.6"), []byte("libq.so.9")), "library libq.so.9, which " + dir + "/missing needs, is missing: install the package that contains it"},
		"loader":  {bytes.Replace(good, []byte("/lib64/ld-linux"), []byte("/lib99/ld-linux"), 1), "its loader /lib99/ld-linux-x86-64.so.2 cannot be used (no such file or directory): install the C library that it was built for"},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, test.content, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := (Host{}).Find(file); err == nil || err.Error() != file+": "+test.want {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	if _, err := (Host{}).Find(dir + "/none"); err == nil || err.Error() != dir+"/none: no such file or directory: give a program that exists and can be read" {
		t.Errorf("%v", err)
	}
}

// TestConf: without a cache (ld.so.cache), the folders in ld.so.conf are searched.
func TestConf(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"etc/ld.so.conf": "# all\ninclude conf.d/*.conf\n/opt/lib # here\n", "etc/conf.d/a.conf": "/a/lib\n/b/lib\n", "etc/conf.d/b": "/no\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := &search{Host: Host{root}}
	if err := s.system(); err != nil || !slices.Equal(s.conf, []string{"/a/lib", "/b/lib", "/opt/lib"}) {
		t.Errorf("%q, %v", s.conf, err)
	}
}

// TestCache: the package finds every library that ldconfig -p prints for this processor.
func TestCache(t *testing.T) {
	b, err := os.ReadFile("/etc/ld.so.cache")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseCache(b)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("/sbin/ldconfig", "-p").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if name, rest, ok := strings.Cut(strings.TrimSpace(line), " ("); ok && strings.HasPrefix(rest, "libc6,x86-64)") && !want[name] {
			want[name] = true
			if _, p, _ := strings.Cut(rest, "=> "); got[name] != p {
				t.Errorf("%s is %q, want %q", name, got[name], p)
			}
		}
	}
	if len(want) != len(got) || len(want) == 0 {
		t.Errorf("%d libraries, want %d", len(got), len(want))
	}
}

// FuzzCache: no cache makes the parser panic.
func FuzzCache(f *testing.F) {
	f.Add([]byte(newMagic))
	f.Add(append([]byte(newMagic+"\x01\x00\x00\x00"), make([]byte, 60)...))
	f.Add(append([]byte(oldMagic+"\x00\x01\x00\x00\x00"), make([]byte, 90)...))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = parseCache(b) })
}

// FuzzObject: no file makes the reader of dynamic sections panic.
func FuzzObject(f *testing.F) {
	if good, err := os.ReadFile("/bin/true"); err == nil {
		f.Add(good[:1024])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = Host{}.open(file, nil)
	})
}
