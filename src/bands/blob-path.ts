import { join } from 'node:path'

/** Path of the hard link that is named by a file's digest. `root` is `DATA_PATH/bands`. */
export function bandBlobPath(root: string, sha256: string): string {
  return join(root, 'blobs', sha256)
}
