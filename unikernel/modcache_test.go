package unikernel

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A program that is run as path@version reads about itself what it reads when the
// go command runs it so, and already while it is initialised.
func TestBuildInfo(t *testing.T) {
	proxy := publish(t, "example.org/m", "v1.2.3", map[string]string{
		"go.mod": "module example.org/m\n\ngo 1.24\n",
		"cmd/main.go": `package main

import (
	"fmt"
	"runtime/debug"
)

var info, ok = debug.ReadBuildInfo()

func main() {
	fmt.Println(ok, info.Path, info.Main, info.Main.Replace, info.Deps)
}
`,
	})
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
	plain, err := exec.Command("go", "run", "example.org/m/cmd@v1.2.3").CombinedOutput()
	if err != nil || !bytes.Contains(plain, []byte("v1.2.3 h1:")) {
		t.Fatalf("%v: %s", err, plain)
	}
	cmd := exec.Command(os.Args[0], "example.org/m/cmd@v1.2.3")
	cmd.Env = append(os.Environ(), helper+"="+strconv.Itoa(int(NoNetwork)))
	onLoam, err := cmd.CombinedOutput()
	if err != nil || !bytes.HasSuffix(plain, onLoam) { // the go command says what it downloads
		t.Errorf("%s, %v, without Loam:\n%s", onLoam, err, plain)
	}
}

// A module that wants a release of Go which the go command must not fetch is told
// from one that is not there.
func TestModuleWantsNewerGo(t *testing.T) {
	proxy := publish(t, "example.org/newer", "v1.0.0", map[string]string{
		"go.mod": "module example.org/newer\n\ngo 1.99\n", "main.go": "package main\n\nfunc main() {}\n",
	})
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
	t.Setenv("GOTOOLCHAIN", "local")
	for arg, want := range map[string]string{
		"example.org/newer@v1.0.0": "; GOTOOLCHAIN=local): set GOTOOLCHAIN=auto, or install that release of Go",
		"example.org/newer@v1.9.9": ": check the path and the version",
	} {
		_, err := NewPlan(t.Context(), Target{Args: []string{arg}})
		var told *Error
		if !errors.As(err, &told) || !strings.HasSuffix(err.Error(), want) || told.Output != "" {
			t.Errorf("%s: %+v, want %s and no more", arg, err, want)
		}
	}
}

// publish makes a module proxy, as a folder, that has one version of one module.
func publish(t *testing.T, path, version string, files map[string]string) string {
	t.Helper()
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, text := range files {
		w, err := z.Create(path + "@" + version + "/" + name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string]string{
		"list": version + "\n", version + ".info": `{"Version": "` + version + `"}`,
		version + ".mod": files["go.mod"], version + ".zip": archive.String(),
	} {
		if err := writeFile(filepath.Join(dir, path, "@v", name), []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A program of the module cache can be started again while it is being built: the
// go.mod that it is built by always has the copy of its module in it.
func TestBorrowedTwice(t *testing.T) {
	proxy := publish(t, "example.org/m", "v1.2.3", map[string]string{
		"go.mod": "module example.org/m\n\ngo 1.24\n", "main.go": "package main\n\nfunc main() {}\n",
	})
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	c, err := openCache()
	if err != nil {
		t.Fatal(err)
	}
	target := Target{Args: []string{"example.org/m@v1.2.3"}}
	l, err := locate(t.Context(), c, target)
	if err != nil {
		t.Fatal(err)
	}
	modfile := strings.TrimPrefix(l.flags[0], "-modfile=")
	again := make(chan error, 1) // how the others ended
	go func() {
		for range 5 {
			if _, err := locate(t.Context(), c, target); err != nil {
				again <- err
				return
			}
		}
		again <- nil
	}()
	for {
		if data, err := os.ReadFile(modfile); err != nil || !bytes.Contains(data, []byte("replace example.org/m => ")) {
			t.Fatalf("%v:\n%s", err, data)
		}
		select {
		case err := <-again:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

// A module that does not build for want of its replace lines, or of files that its
// developers make before they build, is told from a wrong one.
func TestModuleThatBuildsElsewhere(t *testing.T) {
	for _, c := range []struct{ name, gomod, main, want string }{
		{
			"replace", "module example.org/replace\n\ngo 1.24\n\nreplace example.org/other => ./other\n",
			"package main\n\nfunc main() { missing() }\n", "run it in a clone of it",
		},
		{
			"embed", "module example.org/embed\n\ngo 1.24\n",
			"package main\n\nimport _ \"embed\"\n\n//go:embed dist/page\nvar page string\n\nfunc main() {}\n", "once these are made there",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			proxy := publish(t, "example.org/"+c.name, "v1.0.0", map[string]string{"go.mod": c.gomod, "main.go": c.main})
			t.Setenv("GOPROXY", "file://"+proxy)
			t.Setenv("GONOSUMDB", "*")
			t.Setenv("GOMODCACHE", t.TempDir())
			t.Setenv("GOFLAGS", "-modcacherw")
			p, err := NewPlan(t.Context(), Target{Args: []string{"example.org/" + c.name + "@v1.0.0"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Build(t.Context()); err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
}
