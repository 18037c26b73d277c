package unikernel

import (
	"os/exec"
	"strings"
	"testing"
)

// A module with a replace line for a required module is built with the replacement, as its authors build
// it. `go install path@version` would reject it.
func TestReplacedModule(t *testing.T) {
	proxies := "file://" + publish(t, "example.org/m", "v1.0.0", map[string]string{
		"go.mod": "module example.org/m\n\ngo 1.24\n\nrequire example.org/old v1.0.0\n\n" +
			"replace example.org/old => example.org/renamed v1.2.0\n",
		"cmd/main.go": "package main\n\nimport \"example.org/old\"\n\nfunc main() { print(old.Word) }\n",
	}) + ",file://" + publish(t, "example.org/old", "v1.0.0", map[string]string{
		"go.mod": "module example.org/renamed\n", "old.go": "package old\n",
	}) + ",file://" + publish(t, "example.org/renamed", "v1.2.0", map[string]string{
		"go.mod": "module example.org/renamed\n", "old.go": "package old\n\nconst Word = \"ok\"\n",
	})
	t.Setenv("GOPROXY", proxies)
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
	for _, version := range []string{"v1.0.0", "latest"} {
		p, err := NewPlan(t.Context(), Target{Args: []string{"example.org/m/cmd@" + version}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Build(t.Context()); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	if out, err := exec.Command("go", "install", "example.org/m/cmd@v1.0.0").CombinedOutput(); err == nil {
		t.Errorf("go install takes such modules now: %s", out)
	}
}

// A required module that is missing and a mistyped path give different errors.
func TestRequiredModuleIsMissing(t *testing.T) {
	proxy := publish(t, "example.org/m", "v1.0.0", map[string]string{
		"go.mod":  "module example.org/m\n\ngo 1.24\n\nrequire example.com/other v1.0.0\n",
		"main.go": "package main\n\nimport _ \"example.com/other\"\n\nfunc main() {}\n",
	})
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
	_, err := NewPlan(t.Context(), Target{Args: []string{"example.org/m@v1.0.0"}})
	if err == nil || !strings.Contains(err.Error(), "example.com/other") || !strings.HasSuffix(err.Error(), "try another version of it") {
		t.Error(err)
	}
}
