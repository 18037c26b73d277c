package rootfs

import (
	"path"
	"strings"
)

// This file reads archives of docker save before version 25, of podman save, and of skopeo copy with the transport
// docker-archive. The archive's file manifest.json lists the images with the names of their files
// (github.com/moby/docker-image-spec, "Combined Image JSON + Filesystem Changeset Format").

// dockerImage is an entry of manifest.json.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// dockerManifest is the name of the list of images.
const dockerManifest = "manifest.json"

// isDockerArchive reports whether a store contains images in docker's format. Another file may have the same name, so
// its content decides.
func isDockerArchive(s store) bool {
	var images []dockerImage
	return readFile(s, dockerManifest, &images) == nil && len(images) > 0 && images[0].Config != "" && len(images[0].Layers) > 0
}

// readDocker reads the image with a tag, or the only image if tag is empty.
func (s Source) readDocker(from store, tag string) (*Root, error) {
	var images []dockerImage
	if err := readFile(from, dockerManifest, &images); err != nil {
		return nil, err
	}
	image, err := chooseDocker(images, tag)
	if err != nil {
		return nil, err
	}
	config, err := readDockerConfig(from, image)
	if err != nil {
		return nil, err
	}
	return s.build(func(t *tree) (*Config, error) {
		for i, name := range image.Layers {
			if err := addDockerLayer(t, from, name, config.RootFS.DiffIDs[i]); err != nil {
				return nil, inLayer(i+1, err)
			}
		}
		return &config.Config, nil
	})
}

// chooseDocker returns the image with a tag, or the only one.
func chooseDocker(images []dockerImage, tag string) (dockerImage, error) {
	var tags []string
	for _, i := range images {
		for _, t := range i.RepoTags {
			if t == tag {
				return i, nil
			}
			tags = append(tags, t)
		}
	}
	switch {
	case tag != "":
		return dockerImage{}, errTag(tag, tags)
	case len(images) > 1:
		return dockerImage{}, errSeveral(tags)
	}
	return images[0], nil
}

// readDockerConfig reads the configuration of an image. Its file name is its digest.
func readDockerConfig(from store, image dockerImage) (c imageConfig, err error) {
	const what = "the configuration"
	b, err := from.open(image.Config)
	if err != nil {
		return c, errorf(copyAgain, "%s, %s, cannot be read: %v", what, image.Config, err)
	}
	defer b.Close()
	if sum, err := parseDigest("sha256:" + strings.TrimSuffix(path.Base(image.Config), ".json")); err == nil {
		if err := sum.verify(b, what); err != nil {
			return c, err
		}
		if _, err := b.Seek(0, 0); err != nil {
			return c, err
		}
	}
	if err := readJSON(b, what, &c); err != nil {
		return c, err
	}
	if p := c.platform(); !p.wanted() {
		return c, errPlatform([]string{p.String()})
	}
	if n := len(image.Layers); n != len(c.RootFS.DiffIDs) || n > maxLayers {
		return c, errorf(copyAgain, "it has %d layers, and digests of %d", n, len(c.RootFS.DiffIDs))
	}
	return c, nil
}

// addDockerLayer adds a layer to a tree. id is the digest of the decompressed layer.
func addDockerLayer(t *tree, from store, name, id string) error {
	sum, err := parseDigest(id)
	if err != nil {
		return err
	}
	b, err := from.open(name)
	if err != nil {
		return errorf(copyAgain, "%s cannot be read: %v", name, err)
	}
	defer b.Close()
	return t.addLayer(b, &sum)
}
