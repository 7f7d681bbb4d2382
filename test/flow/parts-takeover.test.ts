/** The machine that puts an upload in parts together is killed after it accepted the item, before the record states it. */
import { Client } from 'pg'
import t from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { startPostgres } from '../engines/postgres-server.js'
import { bucketAt, hasRadosgw, startRadosgw, storeSettings } from '../engines/radosgw.js'
import { postgresAbsent } from '../engines/two-machines.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { headerOf } from '../signed-item.js'
import { run } from './running.js'

const partBytes = 5_242_880
const item = signItem(
  ed25519Signer(Buffer.alloc(32, 36)),
  {},
  Buffer.alloc(2 * partBytes - 1000, 'in parts '),
)
const absent = hasRadosgw && postgresAbsent.skip === false ? false : 'PostgreSQL or radosgw is not installed'

const header = headerOf(item)
const itemId = header.id

interface State {
  readonly status?: string
  readonly bundleId?: string
  readonly receipt?: { readonly id: string }
}

async function stateAt(url: string): Promise<State> {
  const answer = await fetch(url)
  const text = await answer.text()
  return answer.status === 200 ? (JSON.parse(text) as State) : {}
}

t.test('another one gives the receipt, and posts the item once', { skip: absent }, async (t) => {
  const [objects, database] = [await startRadosgw(), await startPostgres()]
  t.teardown(() => Promise.all([objects.stop(), database.stop()]))
  const settings = {
    DEVNET_SEED: 'false',
    DEVNET_BLOCK_MS: '500',
    SERVICES: 'gateway,upload',
    ...storeSettings(objects, await bucketAt(objects)),
    UPLOAD_FREE_ITEM_BYTES: '40000000',
    UPLOAD_FREE_WALLET_BYTES: '40000000',
    UPLOAD_FREE_RANGE_BYTES: '40000000',
    CLUSTER_DATABASE_URL: database.url,
    CLUSTER_TAKEOVER_SECONDS: '12',
  }
  const waits = { ...settings, UPLOAD_BUNDLE_WAIT_SECONDS: '3600' }
  const first = await run(t, scratch('one'), { ...waits, CLUSTER_NODE: 'first' })
  const path = await eventually('it is begun', async () => {
    const answer = await fetch(`${first.urls.upload}/chunks/arweave/-1/-1?chunkSize=${partBytes}`)
    const { id } = (answer.status === 200 ? await answer.json() : {}) as { readonly id?: string }
    return id === undefined ? undefined : `/chunks/arweave/${id}`
  })
  for (let at = 0; at < item.length; at += partBytes) {
    const body = item.subarray(at, at + partBytes)
    const sent = await fetch(`${first.urls.upload}${path}/${at}`, { method: 'POST', body })
    t.equal(sent.status, 200)
  }
  const client = new Client({ connectionString: database.url })
  await client.connect()
  t.teardown(() => client.end())
  // All but the last step of a finalization.
  await client.query(`CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$;
    CREATE TRIGGER never BEFORE UPDATE ON cluster_uploads FOR EACH ROW WHEN (NEW.kind = 2) EXECUTE FUNCTION never()`)
  const answer = await fetch(`${first.urls.upload}${path}/-1`, { method: 'POST' })
  t.equal(answer.status, 503, 'no receipt that others would not give')
  t.match(
    await stateAt(`${first.urls.upload}/v1/tx/${itemId}/status`),
    { status: String },
    'it is accepted all the same',
  )
  await first.kill()
  await client.query('DROP TRIGGER never ON cluster_uploads')
  const second = await run(t, scratch('two'), {
    ...settings,
    UPLOAD_BUNDLE_WAIT_SECONDS: '1',
    CLUSTER_NODE: 'second',
  })
  let seen: unknown
  const { receipt } = await eventually(
    'it is finalized by another one',
    async () => {
      const state = await stateAt(`${second.urls.upload}${path}/status`)
      seen = state
      return state.status === 'FINALIZED' ? state : undefined
    },
    () => [seen, second.log.slice(-20)],
  )
  t.equal(receipt?.id, itemId)
  const permanent = (): Promise<State> =>
    eventually('it is permanent', async () => {
      const state = await stateAt(`${second.urls.upload}/v1/tx/${itemId}/status`)
      return state.status === 'FINALIZED' ? state : undefined
    })
  const { bundleId } = await permanent()
  await eventually('what the machine has left is taken over', async () =>
    JSON.stringify(second.log).includes('are taken over'),
  )
  t.same((await stateAt(`${second.urls.upload}${path}/status`)).receipt, receipt, 'the same receipt')
  t.equal((await permanent()).bundleId, bundleId, 'it is not posted once more')
  t.equal(await second.stop(), 0)
})
