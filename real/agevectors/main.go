// Writes the published test vectors of age into a folder, a file for each and none of them compressed.
package main

import (
	"bytes"
	"compress/zlib"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	agetest "c2sp.org/CCTV/age"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: agevectors FOLDER")
	}
	entries, err := fs.ReadDir(agetest.Vectors, ".")
	check(err)
	for _, entry := range entries {
		vector, err := fs.ReadFile(agetest.Vectors, entry.Name())
		check(err)
		header, body, found := bytes.Cut(vector, []byte("\n\n"))
		if !found {
			log.Fatalf("%s has no header", entry.Name())
		}
		if bytes.Contains(header, []byte("compressed: zlib")) {
			reader, err := zlib.NewReader(bytes.NewReader(body))
			check(err)
			body, err = io.ReadAll(reader)
			check(err)
		}
		check(os.WriteFile(filepath.Join(os.Args[1], entry.Name()+".header"), header, 0o600))
		check(os.WriteFile(filepath.Join(os.Args[1], entry.Name()+".age"), body, 0o600))
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
