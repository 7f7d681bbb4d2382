/** `sluice/node`: files and folders of a disk, for the client in Node. */

export { typeOfName as contentTypeOf } from '../media-type.js'
export { fileStore } from './file-store.js'
export { type FolderReading, fileSource, type ReadFolder, readFolder } from './files.js'
