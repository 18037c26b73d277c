// Package epoll implements epoll sets (epoll(7)). A set knows descriptions of open files, and neither processes nor kinds of
// files.
package epoll
