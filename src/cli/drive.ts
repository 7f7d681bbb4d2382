import { basename } from 'node:path'
import { fileKeyOf } from '../client/fs/drive-keys.js'
import type { Drives, OpenDrive } from '../client/fs/drives.js'
import type { DriveEntity } from '../client/fs/entities.js'
import { encodeBase64url } from '../format/base64url.js'
import { WrongWords } from './command.js'
import { childIn, entityAt, folderAt, parentAndName, pathsOf } from './drive-paths.js'
import { type DriveWords, driveDone, listDrives, putFile, type Scene, sceneOf } from './drive-scene.js'
import { exitCode } from './exit-code.js'
import { oneLine } from './one-line.js'
import { program } from './program-name.js'
import { clientCommand, show } from './wallet.js'
import { writeOut } from './write-out.js'

const help = `${program} drive: drives with folders and files, as others of the network read and write them

Usage: ${program} drive create NAME [--private]     prints the id of the drive
       ${program} drive drives [ADDRESS]            drives of a wallet
       ${program} drive ls DRIVE [PATH] [--all]     what is in a folder; --all: below it too, and what is hidden
       ${program} drive put DRIVE FILE [PATH]       uploads a file; a new version where PATH is there already
       ${program} drive get DRIVE PATH [--output FILE]
       ${program} drive mkdir DRIVE PATH            a folder, and those above it that are missing
       ${program} drive mv DRIVE PATH TO            into the folder TO, or to a new path
       ${program} drive rename DRIVE PATH NAME
       ${program} drive hide|show DRIVE PATH
       ${program} drive share DRIVE PATH            where a file is, and the key that opens it where the drive is private
       ${program} drive snapshot DRIVE              writes all of it as one item, from which it opens faster

DRIVE is its id. A private drive needs the Arweave wallet that made it and its password.

  --private             encrypts names, folders and content
  --password-file FILE  the password; only its owner may be able to read it. Without the option: DRIVE_PASSWORD in the environment
                        A drive that the gateway calls public is not opened with one
  --output FILE         into a file; standard output unless given
  --type TYPE           content type; by the name of the file unless given

Examples:
  ${program} drive create photos --key wallet.json
  ${program} drive put 7f1c... sea.jpg summer/sea.jpg --key wallet.json
`

const options = {
  private: { type: 'boolean' },
  all: { type: 'boolean' },
  output: { type: 'string' },
  type: { type: 'string' },
  'password-file': { type: 'string' },
} as const

type Work = (scene: Scene, words: readonly string[], values: DriveWords) => Promise<number>

/** Words behind the name of a subcommand, checked for how many there are. */
function taken(words: readonly string[], least: number, most: number, what: string): readonly string[] {
  if (words.length >= least && words.length <= most) return words
  throw new WrongWords(`give ${what}`)
}

const create: Work = async ({ drives, password }, words, values) => {
  const [name = ''] = taken(words, 1, 1, 'one NAME')
  if (values.private === true && password === undefined)
    throw new WrongWords('a private drive needs --password-file, or DRIVE_PASSWORD in the environment')
  const made = await drives.create(name, values.private === true ? password : undefined)
  return driveDone(values, { ...made, name }, made.driveId)
}

const listWallet: Work = async ({ drives, address }, words, values) => {
  const [given = address] = taken(words, 0, 1, 'one ADDRESS')
  if (given === undefined) throw new WrongWords('give an ADDRESS or a key')
  const found = await listDrives(drives, given)
  return show(
    values,
    { drives: found },
    found.map(({ id, name, privacy }) => `${id}  ${privacy.padEnd(7)}  ${name}`),
  )
}

/** A folder ends with a slash in listings. */
function line({ kind, file, isHidden, height }: DriveEntity, path: string): string {
  const size = kind === 'folder' ? '-' : String(file?.size ?? 0)
  const state = [isHidden ? 'hidden' : '', height === undefined ? 'not in a block yet' : ''].filter(Boolean)
  return `${size.padStart(12)}  ${path}${kind === 'folder' ? '/' : ''}${state.length > 0 ? `  (${state.join(', ')})` : ''}`
}

const list: Work = async (scene, words, values) => {
  const [, path = ''] = taken(words, 1, 2, 'DRIVE and PATH')
  const open = await scene.open()
  const folder = folderAt(open, path)
  const all = values.all === true
  const below = path.replace(/\/+$/, '')
  const found = [...pathsOf(open)]
    .filter(([, { id }]) => id !== folder)
    .filter(([at, { parentId, isHidden }]) =>
      all ? below === '' || at.startsWith(`${below}/`) : parentId === folder && !isHidden,
    )
    .sort(([one], [other]) => (one < other ? -1 : 1))
  for (const { txId, reason } of open.problems)
    process.stderr.write(`not readable: ${txId}: ${oneLine(reason)}\n`)
  const entries = found.map(([at, { kind, id, file, isHidden }]) => ({
    path: at,
    kind,
    id,
    isHidden,
    ...file,
  }))
  const shown = { drive: open.drive.name, entries, problems: open.problems }
  return show(
    values,
    shown,
    found.map(([at, entity]) => line(entity, at)),
  )
}

const put: Work = async (scene, words, values) => {
  const [, file = '', to = basename(file)] = taken(words, 2, 3, 'DRIVE, FILE and PATH')
  const open = await scene.open()
  const isFolder = entityAt(open, to)?.kind === 'folder'
  const path = isFolder || to.endsWith('/') ? `${to.replace(/\/+$/, '')}/${basename(file)}` : to
  const id = await putFile(scene.drives, open, file, path, values.type)
  return driveDone(values, { id, path }, id)
}

const get: Work = async (scene, words, values) => {
  const [, path = ''] = taken(words, 2, 2, 'DRIVE and PATH')
  const open = await scene.open()
  const pieces = scene.drives.read(open, fileAt(open, path))
  await writeOut(pieces, typeof values.output === 'string' ? values.output : undefined)
  return exitCode.done
}

function fileAt(open: OpenDrive, path: string): DriveEntity {
  const found = childIn(open, path)
  if (found.kind === 'file') return found
  throw new WrongWords(`${path} is a folder`)
}

const mkdir: Work = async (scene, words, values) => {
  const [, path = ''] = taken(words, 2, 2, 'DRIVE and PATH')
  const open = await scene.open()
  const id = await makeFolders(scene.drives, open, path)
  return driveDone(values, { id, path }, id)
}

async function makeFolders(drives: Drives, open: OpenDrive, path: string): Promise<string> {
  const known = entityAt(open, path)
  if (known?.kind === 'folder') return known.id
  if (known !== undefined) throw new WrongWords(`${path} is a file`)
  const { parent, name } = parentAndName(path)
  return drives.createFolder(
    open,
    name,
    parent === '' ? folderAt(open, '') : await makeFolders(drives, open, parent),
  )
}

const move: Work = async (scene, words, values) => {
  const [, from = '', to = ''] = taken(words, 3, 3, 'DRIVE, PATH and TO')
  const open = await scene.open()
  const entity = childIn(open, from)
  const target = to.replace(/\/+$/, '')
  const into = target === '' || entityAt(open, target)?.kind === 'folder'
  const { parent, name } = into ? { parent: target, name: entity.name } : parentAndName(target)
  await scene.drives.change(open, entity, { name, parentId: folderAt(open, parent) })
  return driveDone(values, { id: entity.id, path: parent === '' ? name : `${parent}/${name}` }, entity.id)
}

const rename: Work = async (scene, words, values) => {
  const [, path = '', name = ''] = taken(words, 3, 3, 'DRIVE, PATH and NAME')
  if (name.includes('/')) throw new WrongWords('a NAME has no slash; mv moves')
  const open = await scene.open()
  const entity = childIn(open, path)
  await scene.drives.change(open, entity, { name })
  return driveDone(values, { id: entity.id, name }, entity.id)
}

const hiding =
  (isHidden: boolean): Work =>
  async (scene, words, values) => {
    const [, path = ''] = taken(words, 2, 2, 'DRIVE and PATH')
    const open = await scene.open()
    const entity = childIn(open, path)
    await scene.drives.change(open, entity, { isHidden })
    return driveDone(values, { id: entity.id, isHidden }, entity.id)
  }

const share: Work = async (scene, words, values) => {
  const [, path = ''] = taken(words, 2, 2, 'DRIVE and PATH')
  const open = await scene.open()
  const entity = fileAt(open, path)
  const key = open.key === undefined ? undefined : encodeBase64url(await fileKeyOf(open.key, entity.id))
  const link = `${scene.gateway}/${entity.file?.dataTxId ?? ''}`
  const shown = { fileId: entity.id, dataTxId: entity.file?.dataTxId, link, ...(key && { fileKey: key }) }
  return show(
    values,
    shown,
    key === undefined ? [link] : [`file ${entity.id}`, `key ${key}`, `encrypted at ${link}`],
  )
}

const snapshot: Work = async (scene, words, values) => {
  taken(words, 1, 1, 'one DRIVE')
  const id = await scene.drives.snapshot(await scene.open())
  return driveDone(values, { id }, id)
}

const subcommands: Readonly<Record<string, Work>> = {
  create,
  drives: listWallet,
  ls: list,
  put,
  get,
  mkdir,
  mv: move,
  rename,
  hide: hiding(true),
  show: hiding(false),
  share,
  snapshot,
}

/** Drives. */
export const driveCommand = clientCommand('drive', help, options, async ([name = '', ...words], values) => {
  const work = Object.hasOwn(subcommands, name) ? subcommands[name] : undefined
  if (work === undefined) throw new WrongWords(`give one of ${Object.keys(subcommands).join(', ')}`)
  return work(await sceneOf(values, words[0]), words, values)
})
