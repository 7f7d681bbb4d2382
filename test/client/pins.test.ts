/** Pins: items of others in a public drive, which are not uploaded again. */
import { join } from 'node:path'
import t from 'tap'
import { bundleTags, packBundle } from '../../src/client/bundle-layout.js'
import { Drives, pathIn } from '../../src/client/fs/index.js'
import { signedItem } from '../../src/client/prepare.js'
import type { ArweaveJwk } from '../../src/client/rsa.js'
import { signerOfEd25519 } from '../../src/client/signer.js'
import { eventually } from '../eventually.js'
import { payerAt } from '../flow/payer.js'
import { run } from '../flow/running.js'

t.test('a pin shows the content of somebody else, and stays one when it is renamed', async (t) => {
  const running = await run(t, join(t.testdir(), 'data'), {
    DEVNET_SEED: 'false',
    DEVNET_BLOCK_MS: '0',
    SERVICES: 'gateway',
  })
  const { gateway = '', devnet: node = '' } = running.urls
  const { post, wallet, address } = await payerAt(node)
  const published: Record<string, string>[] = []
  let last = ''
  const publish = async (
    data: Uint8Array,
    tags: readonly { name: string; value: string }[],
  ): Promise<string> => {
    const fields = Object.fromEntries(tags.map(({ name, value }) => [name, value]))
    published.push(fields)
    last = await post(data, fields)
    return last
  }
  const indexed = async (): Promise<string> =>
    eventually('the last item is in a block', async () => {
      const query = encodeURIComponent(
        `{ transaction(id: "${last}") { owner { address } block { height } } }`,
      )
      const { data } = (await (await fetch(`${gateway}/graphql?query=${query}`)).json()) as {
        data: { transaction: { owner: { address: string }; block: object | null } | null }
      }
      return data.transaction?.block != null && data.transaction.owner.address
    })
  const drives = new Drives({ gatewayUrl: gateway, publish, jwk: wallet as unknown as ArweaveJwk })

  const content = Buffer.from('a song of somebody else')
  const item = await signedItem(content, { tags: [] }, await signerOfEd25519(new Uint8Array(32).fill(3)))
  await post(packBundle([item]), Object.fromEntries(bundleTags.map(({ name, value }) => [name, value])))
  const dataTxId = item.id
  last = dataTxId
  const owner = await indexed()
  t.not(owner, address)
  const { driveId, rootFolderId } = await drives.create('music')
  await indexed()
  const what = { dataTxId, owner, size: content.length, contentType: 'text/plain' }
  const fileId = await drives.pin(await drives.open(driveId), {
    ...what,
    name: 'song.txt',
    parentId: rootFolderId,
  })
  t.match(published.at(-1), { 'ArFS-Pin': 'true', 'Pinned-Data-Tx': dataTxId, 'File-Id': fileId })
  await indexed()

  const open = await drives.open(driveId)
  t.strictSame(open.problems, [])
  const pinned = open.entities.find(({ id }) => id === fileId)
  if (pinned === undefined) throw new Error('the pin is not listed')
  t.match(pinned.file, { dataTxId, pinnedOwner: owner, size: content.length, contentType: 'text/plain' })
  t.ok(content.equals(Buffer.from(await drives.get(open, pinned))))

  await drives.change(open, pinned, { name: 'tune.txt' })
  t.match(published.at(-1), { 'ArFS-Pin': 'true', 'Pinned-Data-Tx': dataTxId }, 'a revision is a pin, too')
  await indexed()
  const later = await drives.open(driveId)
  const renamed = later.entities.find(({ id }) => id === fileId)
  if (renamed === undefined) throw new Error('the pin is not listed')
  t.equal(pathIn(later, renamed), 'tune.txt')
  t.match(renamed.file, { dataTxId, pinnedOwner: owner })
  t.ok(content.equals(Buffer.from(await drives.get(later, renamed))))

  const locked = await drives.create('locked', 'word')
  await indexed()
  const closed = await drives.open(locked.driveId, 'word')
  const intoPrivate = drives.pin(closed, { ...what, name: 'song.txt', parentId: locked.rootFolderId })
  await t.rejects(intoPrivate, { code: 'invalid-input' }, 'content of a private drive is encrypted')
})
