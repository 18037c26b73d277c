//go:build !race

package unikernel

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// sharedRoot returns the command of a program whose root is a folder of the host itself.
func sharedRoot(root, program string, args ...string) *exec.Cmd {
	cmd := linuxCommand(program, args...)
	cmd.Env = append(cmd.Env, withFiles+"="+root, withSharedRoot+"=1")
	return cmd
}

// A root folder that is shared keeps what a program changes, and the program can execute what it has copied there. The
// folder's own /dev, /run and files of /etc that Loam writes stay as they are.
func TestLinuxSharedRoot(t *testing.T) {
	root := rootWith(t, "/bin/dash", "/bin/cat", "/bin/cp", "/bin/rm", "/bin/ls", "/bin/chown", "/bin/stat", "/bin/ln")
	if err := os.MkdirAll(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	const hosts = "192.0.2.1 own\n"
	for name, text := range map[string]string{"etc/hosts": hosts, "etc/passwd": "root:x:0:0::/root:/bin/sh\nwww:x:33:33::/var/www:/bin/sh\n", "dev/null": "none"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const script = `set -e
cd /
cp /bin/cat /bin/copy
ln -s copy /bin/link
echo text > /srv; link /srv
chown www /srv; stat -c '%U %a' /srv
exec 3> /gone; rm /gone; echo unlinked >&3; cat /proc/self/fd/3
cat /etc/hosts > /hosts
echo > /dev/null; ls -d /run /run/lock /proc/self/exe /dev/shm
echo lost > /run/file; echo lost > /dev/shm/file
while read -r source path kind rest; do [ $path != / ] || echo $source $kind; done < /proc/mounts`
	const want = "text\nwww 644\nunlinked\n/dev/shm\n/proc/self/exe\n/run\n/run/lock\nfolder0 9p\n"
	if out, err := sharedRoot(root, "/bin/dash", "-c", script).CombinedOutput(); err != nil || string(out) != want {
		t.Fatalf("%v:\n%s\nwant\n%s", err, out, want)
	}
	if out, err := sharedRoot(root, "/bin/link", "/srv", "/etc/passwd").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "text\nroot:") {
		t.Errorf("%v: %s", err, out)
	}
	for name, want := range map[string]string{"srv": "text\n", "etc/hosts": hosts, "dev/null": "none"} {
		if b, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(b) != want {
			t.Errorf("%s: %v: %q", name, err, b)
		}
	}
	if b, err := os.ReadFile(filepath.Join(root, "hosts")); err != nil || !strings.Contains(string(b), "localhost") {
		t.Errorf("/etc/hosts in the guest: %v: %q", err, b)
	}
	for _, name := range []string{"gone", "run/file", "dev/shm"} {
		if _, err := os.Lstat(filepath.Join(root, name)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A shared root folder that cannot be used is reported in one line.
func TestLinuxSharedRootMissing(t *testing.T) {
	out, err := sharedRoot(filepath.Join(t.TempDir(), "none"), "/bin/dash").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--root ") || bytes.Count(out, []byte("\n")) != 1 {
		t.Errorf("%v: %s", err, out)
	}
}

// A shared root folder whose /etc/resolv.conf is a symbolic link into a missing folder can be used, and one that cannot be used is
// reported with the reason.
func TestLinuxSharedRootLinks(t *testing.T) {
	link := func(name, target string) func(string) error {
		return func(root string) error {
			return errors.Join(os.RemoveAll(filepath.Join(root, name)), os.Symlink(target, filepath.Join(root, name)))
		}
	}
	for name, c := range map[string]struct {
		prepare func(root string) error
		folder  string
		want    string
	}{
		"resolv.conf": {prepare: link("etc/resolv.conf", "../run/systemd/resolve/stub-resolv.conf"), want: "Loam\n"},
		"dangling":    {prepare: link("dev", "../../../nowhere"), want: "/dev: no such file or directory\n"},
		"file": {prepare: func(root string) error {
			return errors.Join(os.RemoveAll(root+"/dev"), os.WriteFile(root+"/dev", nil, 0o644))
		}, want: "/dev: not a directory\n"},
		"workdir": {prepare: func(string) error { return nil }, folder: "/missing", want: "/missing: no such file or directory\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := rootWith(t, "/bin/dash", "/bin/cat")
			if err := errors.Join(os.MkdirAll(filepath.Join(root, "etc"), 0o755), c.prepare(root)); err != nil {
				t.Fatal(err)
			}
			cmd := sharedRoot(root, "/bin/dash", "-c", "cat /etc/resolv.conf; echo Loam")
			cmd.Env = append(cmd.Env, inFolder+"="+c.folder)
			if out, err := cmd.CombinedOutput(); !strings.HasSuffix(string(out), c.want) || (err == nil) != (name == "resolv.conf") {
				t.Errorf("%v: %q", err, out)
			}
			for _, name := range []string{"nowhere", "run/systemd", "missing"} {
				if _, err := os.Lstat(filepath.Join(root, name)); !os.IsNotExist(err) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}
