/** `sluice/node`: files and folders of a disk, for the client in Node. */
export { fileStore } from './file-store.js'
export { contentTypeOf, fileSource, type ReadFolder, readFolder } from './files.js'
