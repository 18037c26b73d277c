package rootfs

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// OCI image layouts (OCI image specification 1.1, "Image Layout"). An index lists images and further indexes. An image has
// a manifest, which refers to a configuration and to layers.

// Media types of the specification, and docker's names for them.
var (
	indexTypes = []string{
		"application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json",
	}
	manifestTypes = []string{
		"application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json",
	}
	configTypes = []string{
		"application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json",
	}
	layerTypes = []string{
		"application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip",
		"application/vnd.oci.image.layer.v1.tar+zstd", "application/vnd.oci.image.layer.nondistributable.v1.tar",
		"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
		"application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
		"application/vnd.docker.image.rootfs.diff.tar", "application/vnd.docker.image.rootfs.diff.tar.gzip",
		"application/vnd.docker.image.rootfs.diff.tar.zstd", "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
	}
)

// Limits of an image's structure.
const (
	maxIndexDepth = 4
	maxLayers     = 1000
)

// index and manifest are the JSON texts of an image.
type (
	index struct {
		Manifests []descriptor `json:"manifests"`
	}
	manifest struct {
		MediaType string       `json:"mediaType"`
		Config    descriptor   `json:"config"`
		Layers    []descriptor `json:"layers"`
	}
)

// IsLayout reports whether a folder contains an OCI image layout.
func IsLayout(name string) bool {
	files, err := os.OpenRoot(name)
	if err != nil {
		return false
	}
	defer files.Close()
	return isLayout(folderStore{files})
}

// isLayout reports whether a store contains an OCI image layout.
func isLayout(s store) bool {
	for _, name := range []string{"oci-layout", "index.json"} {
		b, err := s.open(name)
		if err != nil {
			return false
		}
		b.Close()
	}
	return true
}

// image is an image that was found in a layout.
type image struct {
	manifest manifest
	config   imageConfig
	tag      string
}

// readImage reads the image with a tag, or the only image if tag is empty.
func (s Source) readImage(from store, tag string) (*Root, error) {
	f := &finder{from: from, tag: tag}
	var top index
	if err := readFile(from, "index.json", &top); err != nil {
		return nil, err
	}
	if err := f.search(top, "", 1); err != nil {
		return nil, err
	}
	found, err := f.choose()
	if err != nil {
		return nil, err
	}
	if n := len(found.manifest.Layers); n > maxLayers {
		return nil, errorf(copyAgain, "it has %d layers, more than %d", n, maxLayers)
	}
	return s.build(func(t *tree) (*Config, error) {
		for i, d := range found.manifest.Layers {
			if err := f.addLayer(t, d, i+1); err != nil {
				return nil, err
			}
		}
		return &found.config.Config, nil
	})
}

// finder searches a layout for images.
type finder struct {
	from   store
	tag    string   // the wanted tag; empty: any
	found  []*image // images for the platform
	others []string // platforms of other images
	types  []string // unknown media types
	tags   []string // all tags
}

// search finds the images of an index. tag is the tag of the index; empty: each entry has its own.
func (f *finder) search(i index, tag string, depth int) error {
	if depth > maxIndexDepth {
		return errorf(copyAgain, "its indexes are nested more than %d times", maxIndexDepth)
	}
	for _, d := range i.Manifests {
		name := tag
		if depth == 1 {
			if name = d.tag(); name != "" {
				f.tags = append(f.tags, name)
			}
			if f.tag != "" && !d.tagged(f.tag) {
				continue
			}
		}
		switch {
		case slices.Contains(indexTypes, d.MediaType):
			var next index
			if err := readDescribed(f.from, d, "an index", &next); err != nil {
				return err
			}
			if err := f.search(next, name, depth+1); err != nil {
				return err
			}
		case !slices.Contains(manifestTypes, d.MediaType):
			f.types = append(f.types, d.MediaType)
		case d.Platform != nil && !d.Platform.wanted():
			f.others = append(f.others, d.Platform.String())
		default:
			if err := f.read(d, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Annotations with the name of an image: of the specification, and of containerd.
const (
	nameAnnotation       = "org.opencontainers.image.ref.name"
	containerdAnnotation = "io.containerd.image.name"
)

// tag returns the name of an image.
func (d descriptor) tag() string { return d.Annotations[nameAnnotation] }

// tagged reports whether an image has a name.
func (d descriptor) tagged(tag string) bool {
	return d.tag() == tag || d.Annotations[containerdAnnotation] == tag
}

// read reads the manifest and the configuration of an image.
func (f *finder) read(d descriptor, tag string) error {
	i := &image{tag: tag}
	if err := readDescribed(f.from, d, "the manifest", &i.manifest); err != nil {
		return err
	}
	if t := i.manifest.Config.MediaType; !slices.Contains(configTypes, t) {
		f.types = append(f.types, t)
		return nil
	}
	if err := readDescribed(f.from, i.manifest.Config, "the configuration", &i.config); err != nil {
		return err
	}
	if p := i.config.platform(); !p.wanted() {
		f.others = append(f.others, p.String())
		return nil
	}
	f.found = append(f.found, i)
	return nil
}

// choose returns the image to use. Of several with the same tag, it is the first.
func (f *finder) choose() (*image, error) {
	switch {
	case len(f.found) > 0:
	case len(f.others) > 0:
		return nil, errPlatform(f.others)
	case len(f.types) > 0:
		return nil, errorf("get an image of a container", "the media type %.80q is not known", f.types[0])
	case f.tag != "":
		return nil, errTag(f.tag, f.tags)
	default:
		return nil, errorf(copyAgain, "index.json lists no image")
	}
	for _, i := range f.found {
		if i.tag != f.found[0].tag {
			return nil, errSeveral(f.tags)
		}
	}
	return f.found[0], nil
}

// errTag returns the error for a tag that no image has.
func errTag(tag string, all []string) error {
	return errorf("write --root PATH:TAG with one of its tags: "+strings.Join(all, ", "), "no image has the tag %s", tag)
}

// errSeveral returns the error for several images.
func errSeveral(tags []string) error {
	return errorf("write --root PATH:TAG with one of its tags: "+strings.Join(tags, ", "), "it contains several images")
}

// addLayer adds a layer of an image to a tree.
func (f *finder) addLayer(t *tree, d descriptor, number int) error {
	what := fmt.Sprintf("layer %d", number)
	if !slices.Contains(layerTypes, d.MediaType) {
		return errorf("get an image of a container", "%s: the media type %.80q is not known", what, d.MediaType)
	}
	b, err := openBlob(f.from, d, what)
	if err != nil {
		return err
	}
	defer b.Close()
	return inLayer(number, t.addLayer(b, nil))
}
