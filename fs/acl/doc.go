// Package acl has POSIX access control lists (acl(5), the draft POSIX.1e): which lists are valid, what a list allows, and how
// a list and the permission bits of a file determine each other. It also has the two formats in which lists are stored: as
// extended attributes (format.go), and on ext4 disks (disk.go).
//
// A file can have an access list, which decides together with the permission bits who may use it. A directory can also have a
// default list, which new files in it get (Create). The permission bits of owner and others always equal the entries for the
// owner and others. The group bits equal the mask of the list, or, in a list without a mask, the entry of the group.
package acl
