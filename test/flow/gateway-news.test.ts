/** A gateway on another machine hears of uploads and of their bundles, however often it is away. */
import t from 'tap'
import { tagOf } from '../../src/format/tag.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { serveWeb } from '../admission/web.js'
import { eventually } from '../eventually.js'
import { headerOf } from '../signed-item.js'
import { run } from './running.js'

t.test('accepted items and bundles are told until they are heard, through a kill', async (t) => {
  let isAway = true
  let knocks = 0
  const heard: { readonly path: string; readonly key: string | undefined; readonly body: unknown }[] = []
  const web = await serveWeb(t, (call) => {
    knocks += 1
    if (isAway) return call.json(503, {})
    heard.push({ path: call.path, key: call.headers.authorization, body: JSON.parse(call.text) })
    call.json(200, {})
  })
  const folder = t.testdir()
  const settings = {
    SERVICES: 'gateway,upload',
    DEVNET_SEED: 'false',
    DEVNET_BLOCK_MS: '300',
    UPLOAD_GATEWAY_ADMIN_URL: `${web.url}/gateway/admin/`,
    UPLOAD_GATEWAY_ADMIN_KEY: 'key-of-the-gateway',
  }
  const program = await run(t, folder, settings)
  const tags = [tagOf('Content-Type', 'text/plain'), tagOf('A', 'é')]
  const item = signItem(ed25519Signer(Buffer.alloc(32, 3)), { tags }, Buffer.from('news'))
  const header = headerOf(item)
  const answer = await fetch(`${program.urls.upload}/tx`, { method: 'POST', body: item })
  t.equal(answer.status, 200, 'nobody waits for the gateway elsewhere')
  await eventually('the gateway is called', () => knocks > 0)
  await program.kill()
  isAway = false
  const second = await run(t, folder, settings)
  const reported = await eventually('the item is reported', () =>
    heard.find(({ path }) => path.endsWith('/queue-data-item')),
  )
  t.equal(reported.path, '/gateway/admin/queue-data-item')
  t.equal(reported.key, 'Bearer key-of-the-gateway')
  t.match(reported.body, [
    {
      id: header.id,
      owner: Buffer.from(header.owner).toString('base64url'),
      data_size: 4,
      signature: Buffer.from(header.signature).toString('base64url'),
      content_type: 'text/plain',
      tags: [
        { name: Buffer.from('Content-Type').toString('base64url') },
        { value: Buffer.from('é').toString('base64url') },
      ],
    },
  ])
  const bundle = await eventually('the bundle is reported', () =>
    heard.find(({ path }) => path.endsWith('/queue-bundle')),
  )
  const status = await (await fetch(`${second.urls.upload}/tx/${header.id}/status`)).json()
  t.match(bundle.body, { id: (status as { bundleId: string }).bundleId })
  t.equal(heard.filter(({ path }) => path.endsWith('/queue-data-item')).length, 1)
  t.equal(await second.stop(), 0)
})

t.test('what a sandbox keeps no more is forgotten elsewhere, too', async (t) => {
  const heard: { readonly path: string; readonly body: unknown }[] = []
  const web = await serveWeb(t, (call) => {
    heard.push({ path: call.path, body: JSON.parse(call.text) })
    call.json(200, {})
  })
  const program = await run(t, t.testdir(), {
    SERVICES: 'gateway,upload',
    UPLOAD_SANDBOX: 'true',
    UPLOAD_SANDBOX_KEEP_SECONDS: '2',
    UPLOAD_GATEWAY_ADMIN_URL: `${web.url}/gateway/admin`,
    UPLOAD_GATEWAY_ADMIN_KEY: 'key',
  })
  const item = signItem(ed25519Signer(Buffer.alloc(32, 4)), {}, Buffer.from('old news'))
  const answer = await fetch(`${program.urls.upload}/tx`, { method: 'POST', body: item })
  const { id } = (await answer.json()) as { id: string }
  const gone = await eventually('the gateway has to forget the item', () =>
    heard.find(({ path }) => path.endsWith('/forget-data-item')),
  )
  t.same(gone, { path: '/gateway/admin/forget-data-item', body: [id] })
  t.equal(heard[0]?.path, '/gateway/admin/queue-data-item', 'after it was told of')
  t.equal(await program.stop(), 0)
})
