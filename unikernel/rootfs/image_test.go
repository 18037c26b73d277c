package rootfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"loam/fs"
	"loam/fs/memfs"
	"loam/fs/tarfs"
)

// item is an entry of an archive. text is the content of a regular file, or the target of a link.
type item struct {
	kind byte
	name string
	text string
}

func file(name, text string) item    { return item{tar.TypeReg, name, text} }
func folder(name string) item        { return item{tar.TypeDir, name, ""} }
func symlink(name, text string) item { return item{tar.TypeSymlink, name, text} }
func hardlink(name, to string) item  { return item{tar.TypeLink, name, to} }

// archive returns a tar archive.
func archive(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, i := range items {
		h := &tar.Header{Typeflag: i.kind, Name: i.name, Mode: 0o755, ModTime: time.Unix(1, 0)}
		if i.kind == tar.TypeReg {
			h.Size = int64(len(i.text))
		} else {
			h.Linkname = i.text
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if i.kind == tar.TypeReg {
			io.WriteString(w, i.text)
		}
	}
	w.Close()
	return b.Bytes()
}

func gzipped(b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(b)
	w.Close()
	return z.Bytes()
}

func zstandard(b []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return w.EncodeAll(b, nil)
}

// Media types of test images.
const (
	testManifest = "application/vnd.oci.image.manifest.v1+json"
	testIndex    = "application/vnd.oci.image.index.v1+json"
	testConfig   = "application/vnd.oci.image.config.v1+json"
	testLayer    = "application/vnd.oci.image.layer.v1.tar"
)

// layout is an OCI image layout in a folder.
type layout struct {
	t   testing.TB
	dir string
}

func newLayout(t testing.TB) layout {
	l := layout{t, t.TempDir()}
	l.put("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	return l
}

func (l layout) put(name string, content []byte) {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, content, 0o644)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// blob stores a blob and returns its descriptor.
func (l layout) blob(mediaType string, content []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	l.put("blobs/sha256/"+sum, content)
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: int64(len(content))}
}

// json stores a value as a blob.
func (l layout) json(mediaType string, v any) descriptor {
	return l.blob(mediaType, encoded(l.t, v))
}

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// image stores an image and returns the descriptor of its manifest.
func (l layout) image(c imageConfig, layers ...descriptor) descriptor {
	return l.json(testManifest, manifest{Config: l.json(testConfig, c), Layers: layers})
}

// list writes the list of images.
func (l layout) list(images ...descriptor) string {
	l.put("index.json", encoded(l.t, index{Manifests: images}))
	return l.dir
}

// amd64 is the configuration of an image for this platform.
func amd64(c Config) imageConfig { return imageConfig{Architecture: "amd64", OS: "linux", Config: c} }

// packed returns a folder as a tar archive.
func packed(t testing.TB, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return b.Bytes()
}

// written writes a file and returns its path.
func written(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// read reads a root folder of at most a MiB. No file may remain.
func read(t testing.TB, name string) (*Root, error) {
	t.Helper()
	dir := t.TempDir()
	var open []*os.File
	root, err := Source{Name: name, Bytes: 1 << 20, Names: 100, NewFile: func() (*os.File, error) {
		f, err := os.CreateTemp(dir, "")
		if err == nil {
			open = append(open, f)
			err = os.Remove(f.Name())
		}
		return f, err
	}}.Read()
	for _, f := range open {
		if root != nil && root.Archive == f {
			t.Cleanup(func() { f.Close() })
		} else if _, err := f.Stat(); err == nil {
			t.Errorf("%s: a file remains open", name)
		}
	}
	return root, err
}

// loaded returns the files of a root folder as text: "NAME CONTENT" or "NAME -> TARGET", for all files except folders.
func loaded(t testing.TB, root *Root) string {
	t.Helper()
	b, err := io.ReadAll(io.NewSectionReader(root.Archive, 0, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	system, err := tarfs.Load(b, memfs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	list(t, fs.NewView(fs.NewTree(system)), "", &all)
	return strings.Join(all, "; ")
}

func list(t testing.TB, v *fs.View, dir string, all *[]string) {
	place, err := v.LookupDir(v.Root, dir+"/")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	place.Node.(fs.Directory).Read(0, func(e fs.Entry) bool {
		names = append(names, e.Name)
		return true
	})
	for _, n := range names {
		path := dir + "/" + n
		p, err := v.Lookup(v.Root, path, false)
		if err != nil {
			t.Fatal(err)
		}
		switch a := p.Node.Attr(); a.Mode.Type() {
		case fs.Dir:
			*all = append(*all, path+"/")
			list(t, v, path, all)
		case fs.Symlink:
			target, _ := v.Readlink(v.Root, path)
			*all = append(*all, path+" -> "+target)
		case fs.Regular:
			f, err := v.Open(v.Root, path, fs.ReadOnly, 0)
			if err != nil {
				t.Fatal(err)
			}
			text := make([]byte, a.Size)
			f.Read(text)
			*all = append(*all, fmt.Sprintf("%s %s*%d", path, text, a.Links))
		}
	}
}

// Layers are applied in their order, with whiteouts and links, whatever their compression.
func TestLayers(t *testing.T) {
	base := []item{
		folder("bin"), file("bin/sh", "shell"), folder("etc"), file("etc/a", "1"), file("etc/b", "2"), folder("etc/d"),
		file("etc/d/e", "3"), symlink("lib", "usr/lib"), folder("usr"), folder("usr/lib"),
	}
	const rest = "/usr/; /usr/lib/"
	for name, c := range map[string]struct {
		upper []item
		want  string
	}{
		"no change": {nil, "/bin/; /bin/sh shell*1; /etc/; /etc/a 1*1; /etc/b 2*1; /etc/d/; /etc/d/e 3*1; /lib -> usr/lib; " + rest},
		"a file is removed": {[]item{file("etc/.wh.a", ""), file(".wh.bin", "")},
			"/etc/; /etc/b 2*1; /etc/d/; /etc/d/e 3*1; /lib -> usr/lib; " + rest},
		"a whiteout spares its own layer": {[]item{file("etc/a", "new"), file("etc/.wh.a", ""), file("etc/d/new", "5"), file("etc/.wh.d", ""), file(".wh.bin", "")},
			"/etc/; /etc/a new*1; /etc/b 2*1; /etc/d/; /etc/d/new 5*1; /lib -> usr/lib; " + rest},
		"an opaque folder": {[]item{file("etc/new", "4"), file("etc/.wh..wh..opq", ""), file("bin/.wh..wh..opq", "")},
			"/bin/; /etc/; /etc/new 4*1; /lib -> usr/lib; " + rest},
		"an opaque root": {[]item{file(".wh..wh..opq", ""), file("x", "y")}, "/x y*1"},
		"a folder behind a link": {[]item{file(".wh.etc", ""), file("lib/x.so", "6"), file(".wh.bin", "")},
			"/lib -> usr/lib; /usr/; /usr/lib/; /usr/lib/x.so 6*1"},
		"other types": {[]item{file("etc", "a file"), folder("bin/sh"), folder("lib")},
			"/bin/; /bin/sh/; /etc a file*1; /lib/; " + rest},
		"a hard link to a lower layer": {[]item{hardlink("bin/bash", "bin/sh"), file("bin/.wh.sh", ""), file(".wh.etc", "")},
			"/bin/; /bin/bash shell*1; /lib -> usr/lib; " + rest},
		"names of AUFS": {[]item{file(".wh..wh.plnk/1", ""), file(".wh..wh.aufs", ""), file(".wh.etc", ""), file(".wh.bin", "")},
			"/lib -> usr/lib; " + rest},
	} {
		for how, compress := range map[string]func([]byte) []byte{
			"": func(b []byte) []byte { return b }, "+gzip": gzipped, "+zstd": zstandard,
		} {
			l := newLayout(t)
			dir := l.list(l.image(amd64(Config{}), l.blob(testLayer+how, compress(archive(t, base...))), l.blob(testLayer+how, compress(archive(t, c.upper...)))))
			root, err := read(t, dir)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got := loaded(t, root); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
			}
		}
	}
}

// An image may be a folder or an archive, and an archive may be compressed. The configuration is the image's.
func TestImageFormats(t *testing.T) {
	config := Config{User: "www-data", Env: []string{"A=1"}, Entrypoint: []string{"/init"}, Cmd: []string{"-v"}, WorkingDir: "/srv"}
	layer := archive(t, file("f", "text"))
	l := newLayout(t)
	dir := l.list(l.image(amd64(config), l.blob(testLayer, layer)))
	tarred := packed(t, dir)
	sum := fmt.Sprintf("%x", sha256.Sum256(layer))
	dockerConfig := amd64(config)
	dockerConfig.RootFS.DiffIDs = []string{"sha256:" + sum, "sha256:" + sum}
	text := encoded(t, dockerConfig)
	id := fmt.Sprintf("%x", sha256.Sum256(text))
	docker := archive(t, file(id+".json", string(text)), file("1/layer.tar", string(layer)), symlink("2/layer.tar", "../1/layer.tar"),
		file("manifest.json", `[{"Config":"`+id+`.json","RepoTags":["a:latest"],"Layers":["1/layer.tar","2/layer.tar"]}]`))
	for _, name := range []string{
		dir, written(t, "oci.tar", tarred), written(t, "oci.tgz", gzipped(tarred)), written(t, "oci", zstandard(tarred)),
		written(t, "docker.tar", docker), written(t, "docker.tar.gz", gzipped(docker)),
	} {
		root, err := read(t, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := loaded(t, root); got != "/f text*1" || fmt.Sprint(*root.Config) != fmt.Sprint(config) {
			t.Errorf("%s: %s, %v", name, got, *root.Config)
		}
	}
	if root, err := read(t, written(t, "docker.tar", docker)+":latest"); err == nil {
		t.Errorf("a tag without the name: %v", root)
	}
}

// Of several platforms the image for linux/amd64 is chosen, and of several images the one with the tag.
func TestChoice(t *testing.T) {
	l := newLayout(t)
	layer := func(text string) descriptor { return l.blob(testLayer, archive(t, file("f", text))) }
	on := func(d descriptor, p platform) descriptor {
		d.Platform = &p
		return d
	}
	tagged := func(d descriptor, tag string) descriptor {
		d.Annotations = map[string]string{nameAnnotation: tag}
		return d
	}
	arm := imageConfig{Architecture: "arm64", OS: "linux"}
	several := l.json(testIndex, index{Manifests: []descriptor{
		on(l.image(arm, layer("arm")), platform{"arm64", "linux", "v8"}), on(l.image(amd64(Config{}), layer("amd")), platform{"amd64", "linux", ""}),
		on(l.image(imageConfig{}, layer("proof")), platform{"unknown", "unknown", ""}),
	}})
	other := l.image(amd64(Config{}), layer("other"))
	for _, c := range []struct {
		list      []descriptor
		tag, want string
	}{
		{[]descriptor{several}, "", "/f amd*1"},
		{[]descriptor{tagged(several, "1.0"), tagged(other, "2.0")}, ":1.0", "/f amd*1"},
		{[]descriptor{tagged(several, "1.0"), tagged(other, "2.0")}, ":2.0", "/f other*1"},
		{[]descriptor{tagged(several, "1.0"), tagged(other, "2.0")}, "", "it contains several images: write --root PATH:TAG with one of its tags: 1.0, 2.0"},
		{[]descriptor{tagged(several, "1.0")}, ":3", "no image has the tag 3: write --root PATH:TAG with one of its tags: 1.0"},
		{[]descriptor{l.image(arm, layer("arm"))}, "", "the image is not for linux/amd64, but for linux/arm64"},
		{[]descriptor{on(l.image(arm, layer("arm")), platform{"arm", "linux", "v7"})}, "", "the image is not for linux/amd64, but for linux/arm/v7"},
		{nil, "", "index.json lists no image"},
	} {
		root, err := read(t, l.list(c.list...)+c.tag)
		got := fmt.Sprint(err)
		if err == nil {
			got = loaded(t, root)
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// A damaged image is refused with one line, and leaves nothing behind.
func TestImageRefused(t *testing.T) {
	good := archive(t, file("f", "text"))
	for want, change := range map[string]func(l layout, image *imageConfig, m *manifest){
		"layer 1, blobs/sha256/0000":       func(_ layout, _ *imageConfig, m *manifest) { m.Layers[0].Digest = "sha256:" + strings.Repeat("0", 64) },
		"has 2048 bytes and should have 5": func(_ layout, _ *imageConfig, m *manifest) { m.Layers[0].Size = 5 },
		"the digest of layer 1 is wrong": func(l layout, _ *imageConfig, m *manifest) {
			l.put("blobs/sha256/"+strings.TrimPrefix(m.Layers[0].Digest, "sha256:"), bytes.Repeat([]byte("x"), int(m.Layers[0].Size)))
		},
		"is not of sha256 or sha512":    func(_ layout, _ *imageConfig, m *manifest) { m.Layers[0].Digest = "md5:0" },
		"is malformed":                  func(_ layout, _ *imageConfig, m *manifest) { m.Layers[0].Digest = "sha256:../../../etc/passwd" },
		"layer 1: the media type \"x":   func(_ layout, _ *imageConfig, m *manifest) { m.Layers[0].MediaType = "x" },
		"the media type \"text/plain\"": func(_ layout, _ *imageConfig, m *manifest) { m.Config.MediaType = "text/plain" },
		"layer 1: its path ../f leads out of the root folder": func(l layout, _ *imageConfig, m *manifest) {
			m.Layers[0] = l.blob(testLayer, archive(t, file("../f", "")))
		},
		"layer 1: its path ../../etc/passwd leads out of the root folder": func(l layout, _ *imageConfig, m *manifest) {
			m.Layers[0] = l.blob(testLayer, archive(t, hardlink("f", "../../etc/passwd")))
		},
		"layer 1: it is larger than the machine's memory": func(l layout, _ *imageConfig, m *manifest) {
			m.Layers[0] = l.blob(testLayer+"+gzip", gzipped(archive(t, file("f", strings.Repeat("0", 2<<20)))))
		},
		"layer 1: it is no archive": func(l layout, _ *imageConfig, m *manifest) { m.Layers[0] = l.blob(testLayer, []byte("text")) },
		"layer 1: it is compressed by xz": func(l layout, _ *imageConfig, m *manifest) {
			m.Layers[0] = l.blob(testLayer, append(magicXz[:6:6], good...))
		},
		"it has 1001 layers": func(_ layout, _ *imageConfig, m *manifest) {
			for range maxLayers {
				m.Layers = append(m.Layers, m.Layers[0])
			}
		},
		"it contains no files": func(_ layout, _ *imageConfig, m *manifest) { m.Layers = nil },
	} {
		l := newLayout(t)
		c := amd64(Config{})
		m := manifest{Config: l.json(testConfig, c), Layers: []descriptor{l.blob(testLayer, good)}}
		change(l, &c, &m)
		_, err := read(t, l.list(l.json(testManifest, m)))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	l := newLayout(t)
	d := descriptor{MediaType: "application/x", Digest: "sha256:0"}
	if _, err := read(t, l.list(d)); err == nil || !strings.Contains(err.Error(), `the media type "application/x" is not known`) {
		t.Error(err)
	}
	next := l.image(amd64(Config{}), l.blob(testLayer, good))
	for range maxIndexDepth {
		next = l.json(testIndex, index{Manifests: []descriptor{next}})
	}
	if _, err := read(t, l.list(next)); err == nil || !strings.Contains(err.Error(), "nested more than 4 times") {
		t.Error(err)
	}
	l.put("index.json", []byte("{"))
	if _, err := read(t, l.dir); err == nil || !strings.Contains(err.Error(), "index.json is no JSON") {
		t.Error(err)
	}
}

// A layout whose blob is a link out of the folder, or a pipe, is refused.
func TestLayoutWithLinks(t *testing.T) {
	secret := archive(t, file("f", "text"))
	outside := written(t, "secret", secret)
	l := newLayout(t)
	d := l.blob(testLayer, secret)
	dir := l.list(l.image(amd64(Config{}), d))
	path := filepath.Join(dir, "blobs/sha256", strings.TrimPrefix(d.Digest, "sha256:"))
	for _, err := range []error{os.Remove(path), os.Symlink(outside, path)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := read(t, dir); err == nil || !strings.Contains(err.Error(), "cannot be read: ") {
		t.Error(err)
	}
}

// In docker's format, the digests of the configuration and of the decompressed layers are verified.
func TestDockerRefused(t *testing.T) {
	layer := archive(t, file("f", "text"))
	c := amd64(Config{})
	c.RootFS.DiffIDs = []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}
	text := string(encoded(t, c))
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	list := file("manifest.json", `[{"Config":"`+id+`.json","Layers":["l"]}]`)
	arm := strings.Replace(text, "amd64", "arm64", 1)
	armID := fmt.Sprintf("%x", sha256.Sum256([]byte(arm)))
	for want, items := range map[string][]item{
		"":                                  {list, file(id+".json", text), file("l", string(layer))},
		"the digest of it is wrong":         {list, file(id+".json", text), file("l", string(archive(t, file("f", "TEXT"))))},
		"the digest of the configuration":   {list, file(id+".json", text+" "), file("l", string(layer))},
		"layer 1: l cannot be read":         {list, file(id+".json", text)},
		"the configuration, " + id:          {list, file("l", string(layer))},
		"it has 2 layers, and digests of 1": {file("manifest.json", `[{"Config":"`+id+`.json","Layers":["l","l"]}]`), file(id+".json", text), file("l", string(layer))},
		"it contains several images":        {file("manifest.json", `[{"Config":"c","RepoTags":["a:1"],"Layers":["l"]},{"Config":"c","RepoTags":["b:1"],"Layers":["l"]}]`)},
		"but for linux/arm64":               {file("manifest.json", `[{"Config":"`+armID+`.json","Layers":["l"]}]`), file(armID+".json", arm)},
	} {
		_, err := read(t, written(t, "docker.tar", archive(t, items...)))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
