/** `sluice/fs`: drives, folders and files of the file-system layer. */
export { ClientError } from '../errors.js'
export { type DriveSignatureType, driveKeyOf, driveSignature, fileKeyOf } from './drive-keys.js'
export { pathIn } from './drive-tree.js'
export { type DriveOptions, Drives, type OpenDrive } from './drives.js'
export type { DriveEntity, DriveProblem, FileFacts } from './entities.js'
