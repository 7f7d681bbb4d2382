import type { SluiceClient } from '../client/client.js'
import { ClientError } from '../client/errors.js'
import { ProvingFetcher } from '../client/fetch/verified-fetch.js'
import { Drives, type OpenDrive } from '../client/fs/drives.js'
import { typeOfName } from '../client/media-type.js'
import { fileSource } from '../client/node/files.js'
import { type PayloadSource, sourceOfBytes } from '../client/payload.js'
import { itemSizeOf } from '../client/prepare.js'
import { withShortage } from '../client/shortage.js'
import { addressOfOwner, type ClientSigner } from '../client/signer.js'
import { type TextTag, tagValueOf } from '../client/tags.js'
import { WrongWords } from './command.js'
import { entityAt, folderAt, parentAndName } from './drive-paths.js'
import { jwkOfText, secretOfFile } from './key-file.js'
import { oneLine } from './one-line.js'
import { program } from './program-name.js'
import { type ClientWords, clientOf, clientSettings, keyOf, show } from './wallet.js'

export type DriveWords = ClientWords & Record<string, unknown>

/** What a command on drives works with. */
export interface Scene {
  readonly drives: Drives
  /** Address of the key, as indexes have it. */
  readonly address: string | undefined
  readonly password: string | undefined
  readonly gateway: string
  /** Reads the drive that the words name. */
  open(): Promise<OpenDrive>
}

/** Longer files are proven piece by piece, so that none is held whole. */
const holdBytesMax = 16 * 1024 * 1024

/** What the commands for drives work with, opened by the words of the command line. */
export async function sceneOf(values: DriveWords, driveId: string | undefined): Promise<Scene> {
  const client = await clientOf(values)
  const [gateway = ''] = client.addresses.gatewayUrls
  const key = keyOf(values)
  const jwk = key && jwkOfText(key.text)
  const password = passwordOf(values['password-file'])
  const signer = client.currentSigner
  const fetcher = new ProvingFetcher({
    gatewayUrls: client.addresses.gatewayUrls,
    onFinding: ({ error }) => process.stderr.write(`${error.code}: ${oneLine(error.message)}\n`),
  })
  const drives = new Drives({
    gatewayUrl: gateway,
    fetchContent: (id) => fetcher.content(id, { holdBytesMax }),
    ...(jwk && { jwk }),
    ...(signer && {
      publish: (data, tags) => published(client, signer, sourceOfBytes(data), tags),
      publishSource: (data, tags) => published(client, signer, data, tags),
    }),
  })
  return {
    drives,
    password,
    gateway,
    address: signer && addressOfOwner(signer.owner),
    async open() {
      if (driveId === undefined || !/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(driveId))
        throw new WrongWords(`give the id of a DRIVE; ${program} drive drives lists them`)
      return drives.open(driveId, password)
    },
  }
}

/** Uploads one item of a drive; resolves with its id. */
async function published(
  client: SluiceClient,
  signer: ClientSigner,
  data: PayloadSource,
  tags: readonly TextTag[],
): Promise<string> {
  const bytes = itemSizeOf(data.size, { tags }, signer)
  const work = () => client.upload({ data, dataItemOpts: { tags } })
  return (await withShortage(client, signer.address, bytes, work)).id
}

function passwordOf(file: unknown): string | undefined {
  if (typeof file === 'string') return secretOfFile(file).replace(/\r?\n$/, '')
  return clientSettings().drivePassword
}

/** Drives of a wallet, newest first, each once. The names of private ones are encrypted. */
export async function listDrives(
  drives: Drives,
  owner: string,
): Promise<{ readonly id: string; readonly name: string; readonly privacy: string }[]> {
  const items = await drives.index.query({ 'Entity-Type': 'drive' }, owner)
  const found = new Map<string, { id: string; name: string; privacy: string }>()
  for (const { id: txId, tags } of items) {
    const id = tagValueOf(tags, 'Drive-Id')
    if (id === undefined || found.has(id)) continue
    const privacy = tagValueOf(tags, 'Drive-Privacy') ?? 'public'
    const name = privacy === 'public' ? await nameOf(drives, txId) : '(encrypted)'
    found.set(id, { id, name, privacy })
  }
  return [...found.values()]
}

async function nameOf(drives: Drives, txId: string): Promise<string> {
  try {
    const { name } = JSON.parse(new TextDecoder().decode(await drives.index.content(txId))) as {
      name?: unknown
    }
    return typeof name === 'string' ? name : '(no name)'
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof ClientError) return '(not readable)'
    throw error
  }
}

/** Uploads a file to a path, as a new version where there is one; resolves with its id. */
export async function putFile(
  drives: Drives,
  open: OpenDrive,
  file: string,
  path: string,
  type: unknown,
): Promise<string> {
  const { parent, name } = parentAndName(path)
  const data = await fileSource(file)
  const known = entityAt(open, path)
  if (known?.kind === 'folder') throw new WrongWords(`${path} is a folder`)
  const contentType = typeof type === 'string' ? type : typeOfName(file)
  const version = known === undefined ? {} : { fileId: known.id }
  return drives.put(open, { name, parentId: folderAt(open, parent), data, contentType, ...version })
}

/** Says what was made: its id as text, all of it as JSON. */
export function driveDone(values: DriveWords, made: object, id: string): number {
  return show(values, made, [id])
}
