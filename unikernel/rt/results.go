package rt

import (
	"archive/tar"
	"io"
	"os"
	"path"

	"loam/fs"
	"loam/unikernel/guest"
)

// Results are files that a program leaves for the loam command, such as the profiles of a test. They are
// sent when the program exits by itself, because its file system ends with it.

// resultFolders creates the folders of the results, which exist on the host.
func resultFolders(v *fs.View, c guest.Config) error {
	for _, name := range c.ResultFolders {
		if err := makeFolders(v, name, 0o777); err != nil {
			return err
		}
	}
	for _, name := range c.Results {
		if err := makeFolders(v, path.Dir(name), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// sendResults writes the existing results as a tar archive. Files that cannot be read are omitted: the
// program may have ended before it wrote them.
func sendResults(to io.Writer, names []string) {
	archive := tar.NewWriter(to)
	defer archive.Close()
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		err = archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o644, Typeflag: tar.TypeReg})
		if err == nil {
			_, err = archive.Write(data)
		}
		if err != nil {
			return
		}
	}
}
