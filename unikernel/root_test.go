//go:build !race

package unikernel

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// containerImage writes an OCI image layout with two layers: a root folder, and a second layer that removes /etc/gone. The
// configuration is JSON text.
func containerImage(t *testing.T, root, config string) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, content []byte) {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	blob := func(mediaType string, content []byte) string {
		sum := fmt.Sprintf("%x", sha256.Sum256(content))
		put("blobs/sha256/"+sum, content)
		return fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%d}`, mediaType, sum, len(content))
	}
	var base, upper bytes.Buffer
	z := gzip.NewWriter(&base)
	w := tar.NewWriter(z)
	if err := w.AddFS(os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	z.Close()
	w = tar.NewWriter(&upper)
	w.WriteHeader(&tar.Header{Name: "etc/.wh.gone", Typeflag: tar.TypeReg})
	w.Close()
	manifest := `{"config":` + blob("config.v1+json", []byte(`{"architecture":"amd64","os":"linux","config":`+config+`}`)) +
		`,"layers":[` + blob("layer.v1.tar+gzip", base.Bytes()) + "," + blob("layer.v1.tar", upper.Bytes()) + "]}"
	put("index.json", []byte(`{"manifests":[`+blob("manifest.v1+json", []byte(manifest))+`]}`))
	put("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	return dir
}

// The configuration of an image applies, and the command line takes precedence over it as for docker run.
func TestLinuxContainerImage(t *testing.T) {
	root := rootWith(t, "/bin/dash", "/usr/bin/id", "/bin/cat")
	for name, text := range map[string]string{"gone": "still there\n", "passwd": "root:x:0:0::/root:/bin/sh\nwww:x:33:33::/var/www:/bin/sh\n"} {
		err := os.MkdirAll(filepath.Join(root, "etc"), 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const show = `echo $A $B $HOME $HIDDEN; pwd; id -u; [ -e /etc/gone ] || echo gone`
	image := containerImage(t, root, `{"Entrypoint":["dash","-c"],"Cmd":["`+show+`"],"Env":["PATH=/bin:/usr/bin","A=1","B=2"],"WorkingDir":"/srv/work","User":"www"}`)
	for _, c := range []struct {
		args []string // the first is COMMAND; empty: none
		env  []string
		want string
	}{
		{[]string{""}, nil, "1 2 /var/www\n/srv/work\n33\ngone\n"},
		{[]string{"", "echo own $0", "args"}, nil, "own args\n"},
		{[]string{"echo command $0", "args"}, nil, "command args\n"},
		{[]string{""}, []string{withEnv + "=A=3", inFolder + "=/tmp", asUser + "=0:5"}, "3 2 /root\n/tmp\n0\ngone\n"},
		{[]string{"-u"}, []string{withEntrypoint + "=/usr/bin/id"}, "33\n"},
		{[]string{"/usr/bin/id", "-u"}, []string{withEntrypoint + "="}, "33\n"},
		{[]string{""}, []string{withEntrypoint + "="}, "loam: --root " + image + " names no program: name a program of it, such as /bin/sh\n"},
	} {
		cmd := linuxCommand(c.args[0], c.args[1:]...)
		cmd.Env = append(append(cmd.Env, withFiles+"="+image, "HIDDEN=hidden"), c.env...)
		if out, _ := cmd.CombinedOutput(); string(out) != c.want {
			t.Errorf("%q, %q:\n%s\nwant\n%s", c.args, c.env, out, c.want)
		}
	}
	for want, damage := range map[string]func(dir string){
		"cannot be read: it is missing": func(dir string) { os.RemoveAll(filepath.Join(dir, "blobs")) },
		"is no JSON":                    func(dir string) { os.WriteFile(filepath.Join(dir, "index.json"), nil, 0o644) },
	} {
		dir := containerImage(t, root, "{}")
		damage(dir)
		cmd := linuxCommand("dash")
		cmd.Env = append(cmd.Env, withFiles+"="+dir)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) || bytes.Count(out, []byte("\n")) != 1 {
			t.Errorf("%v, want %q:\n%s", err, want, out)
		}
	}
}

// A program keeps the capabilities that its file has in a root folder.
func TestLinuxFileCapabilities(t *testing.T) {
	asRoot(t, "only root sets capabilities of files")
	root := rootWith(t, "/bin/cat", "/bin/dash")
	// struct vfs_cap_data, revision 2, effective: CAP_NET_RAW
	const capability = "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	if err := syscall.Setxattr(filepath.Join(root, "/bin/cat"), "security.capability", []byte(capability), 0); err != nil {
		t.Fatal(err)
	}
	cmd := linuxCommand("/bin/dash", "-c", "exec /bin/cat /proc/self/status")
	cmd.Env = append(cmd.Env, withFiles+"="+root, asUser+"=1000")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "CapEff:\t0000000000002000\n") {
		t.Errorf("%v: %s", err, out)
	}
}
