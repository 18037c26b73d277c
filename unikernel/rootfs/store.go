package rootfs

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	iofs "io/fs"
	"os"
	"strings"

	"loam/abi/linux"
)

// store is a folder or an archive that contains an image.
type store interface {
	// open opens a file. Errors: errMissing.
	open(name string) (blob, error)
}

// blob is an open file of an image.
type blob interface {
	io.ReadSeekCloser
	Size() int64
}

// errMissing is returned for a file that an image does not contain.
var errMissing = errors.New("it is missing")

// folderStore implements store for a folder. Symbolic links cannot lead out of it.
type folderStore struct{ root *os.Root }

// open implements store.
func (s folderStore) open(name string) (blob, error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|linux.O_NONBLOCK, 0)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, errMissing
	}
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("it is no file")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return fileBlob{f, st.Size()}, nil
}

// fileBlob is a file of the host as a blob.
type fileBlob struct {
	*os.File
	size int64
}

// Size implements blob.
func (b fileBlob) Size() int64 { return b.size }

// copyAgain is the advice for an image whose files are damaged.
const copyAgain = "copy the image again"

// descriptor refers to a blob of an OCI image by its digest (OCI image specification, "Content Descriptors").
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform"`
	Annotations map[string]string `json:"annotations"`
}

// platform is the system that an image is for.
type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Variant      string `json:"variant"`
}

// String returns the platform as docker writes it.
func (p platform) String() string {
	return strings.TrimSuffix(p.OS+"/"+p.Architecture+"/"+p.Variant, "/")
}

// digest is a checked digest: a hash function, and its expected result.
type digest struct {
	name, hex string
	new       func() hash.Hash
}

// parseDigest checks a digest, ALGORITHM:HEX.
func parseDigest(text string) (digest, error) {
	name, value, _ := strings.Cut(text, ":")
	d := digest{name: name, hex: value}
	switch name {
	case "sha256":
		d.new = sha256.New
	case "sha512":
		d.new = sha512.New
	default:
		return d, errorf(copyAgain, "its digest %.80q is not of sha256 or sha512", text)
	}
	if b, err := hex.DecodeString(value); err != nil || len(b) != d.new().Size() || strings.ToLower(value) != value {
		return d, errorf(copyAgain, "its digest %.160q is malformed", text)
	}
	return d, nil
}

// path returns the path of a blob in a layout.
func (d digest) path() string { return "blobs/" + d.name + "/" + d.hex }

// verify reads r to its end, and returns an error if its digest is another one.
func (d digest) verify(r io.Reader, what string) error {
	h := d.new()
	if _, err := io.Copy(h, r); err != nil {
		return damaged(err)
	}
	return d.check(h, what)
}

// check returns an error if a hash function has another result.
func (d digest) check(h hash.Hash, what string) error {
	if got := hex.EncodeToString(h.Sum(nil)); got != d.hex {
		return errorf(copyAgain, "the digest of %s is wrong: %s:%.12s..., not %.12s...", what, d.name, got, d.hex)
	}
	return nil
}

// openBlob opens a blob of a layout, and verifies its size and its digest.
func openBlob(s store, d descriptor, what string) (blob, error) {
	sum, err := parseDigest(d.Digest)
	if err != nil {
		return nil, err
	}
	b, err := s.open(sum.path())
	if err != nil {
		return nil, errorf(copyAgain, "%s, %s, cannot be read: %v", what, sum.path(), err)
	}
	switch {
	case b.Size() != d.Size:
		err = errorf(copyAgain, "%s, %s, has %d bytes and should have %d", what, sum.path(), b.Size(), d.Size)
	default:
		err = sum.verify(b, what)
	}
	if err == nil {
		_, err = b.Seek(0, io.SeekStart)
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// maxJSON limits the size of an image's JSON texts in bytes. The specification requires registries to accept 4 MiB.
const maxJSON = 4 << 20

// readJSON decodes a blob of an image.
func readJSON(b blob, what string, v any) error {
	if b.Size() > maxJSON {
		return errorf(copyAgain, "%s has %d bytes, more than %d", what, b.Size(), maxJSON)
	}
	text, err := io.ReadAll(b)
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(text)).Decode(v)
	}
	if err != nil {
		return errorf(copyAgain, "%s is no JSON: %v", what, err)
	}
	return nil
}

// readFile decodes a JSON file that has no digest.
func readFile(s store, name string, v any) error {
	b, err := s.open(name)
	if err != nil {
		return errorf(copyAgain, "%s cannot be read: %v", name, err)
	}
	defer b.Close()
	return readJSON(b, name, v)
}

// readDescribed decodes the JSON text that a descriptor refers to.
func readDescribed(s store, d descriptor, what string, v any) error {
	b, err := openBlob(s, d, what)
	if err != nil {
		return err
	}
	defer b.Close()
	return readJSON(b, what, v)
}

// imageConfig is the configuration of an image, in OCI's and docker's formats.
type imageConfig struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Variant      string `json:"variant"`
	Config       Config `json:"config"`
	RootFS       struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// platform returns the platform of the image.
func (c *imageConfig) platform() platform { return platform{c.Architecture, c.OS, c.Variant} }

// wanted is the platform of programs on Loam.
func (p platform) wanted() bool { return p.OS == "linux" && p.Architecture == "amd64" }

// errPlatform returns the error for an image that is for other platforms only.
func errPlatform(others []string) error {
	return errorf("get the image for that platform (skopeo copy --override-arch amd64)",
		"the image is not for linux/amd64, but for %s", strings.Join(others, ", "))
}

// addLayer adds a layer, which may be compressed. If sum is not nil, it is the digest of the decompressed layer.
func (t *tree) addLayer(b blob, sum *digest) error {
	plain, _, err := decompressed(b)
	if err != nil {
		return err
	}
	defer plain.Close()
	if sum == nil {
		return t.addArchive(plain, true)
	}
	h := sum.new()
	hashed := io.TeeReader(plain, h)
	if err := t.addArchive(hashed, true); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, &meter{hashed, t}); err != nil { // padding behind the end of the archive
		return damaged(err)
	}
	return sum.check(h, "it")
}

// inLayer adds the number of a layer to an error.
func inLayer(number int, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return &Error{fmt.Sprintf("layer %d: %s", number, own.What), own.Next}
	}
	return err
}
