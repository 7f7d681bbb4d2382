import t from 'tap'
import { silentLog } from '../../src/actor/log.js'
import { AdminKey } from '../../src/routes/admin/admin-key.js'
import { adminRoute } from '../../src/routes/admin/admin-route.js'
import { done, type Order } from '../../src/routes/admin/order.js'
import { stage } from '../gateway/rig.js'

const orders: Order[] = [
  { method: 'GET', path: 'look', summary: 'looks', statuses: [200], act: () => done('seen') },
  {
    method: 'PUT',
    path: 'look',
    summary: 'takes',
    statuses: [200],
    act: ({ body }) => done('taken', { body: body ?? null }),
  },
  {
    method: 'DELETE',
    path: 'look/',
    rest: 'id',
    summary: 'fails',
    statuses: [500],
    act: () => {
      throw new Error('a bug')
    },
  },
]

t.test(
  'an order needs the key; what is wrong with it is said, sniffed by nobody and never kept',
  async (t) => {
    const route = adminRoute({
      pathPrefix: '/gateway',
      key: new AdminKey('open sesame'),
      orders,
      log: silentLog,
      clientOf: () => '192.0.2.1',
    })
    const gateway = await stage({ routes: [route] })
    const authorization = 'Bearer open sesame'
    const rows: [
      method: string,
      path: string,
      shown: string,
      status: number,
      body: string,
      allow?: string,
    ][] = [
      ['GET', 'look', authorization, 200, '{"message":"seen"}'],
      ['GET', 'Look/', authorization, 200, '{"message":"seen"}'],
      ['PUT', 'look', authorization, 200, '{"message":"taken","body":null}'],
      ['GET', 'look', 'BEARER open sesame', 200, '{"message":"seen"}'],
      ['GET', 'look', 'Bearer Open Sesame', 401, 'Unauthorized'],
      ['GET', 'nothing', 'Bearer', 401, 'Unauthorized'],
      ['GET', 'nothing', authorization, 404, 'Not found'],
      ['POST', 'look', authorization, 405, 'Method not allowed', 'GET, PUT'],
      ['GET', 'look/x', authorization, 405, 'Method not allowed', 'DELETE'],
      ['DELETE', 'look/x', authorization, 500, 'a bug'],
    ]
    for (const [method, path, shown, status, text, allow] of rows) {
      const got = await gateway.ask(`/gateway/admin/${path}`, { method, headers: { authorization: shown } })
      t.match(got, { status, headers: { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } })
      t.equal(got.body.toString(), text, `${method} ${path}`)
      t.equal(got.headers.allow, allow)
    }
    const broken = await fetch(`${gateway.url}/gateway/admin/look`, {
      method: 'PUT',
      headers: { authorization },
      body: '{',
    })
    t.match([broken.status, await broken.text()], [400, 'Malformed JSON'])
    t.equal(broken.headers.get('x-content-type-options'), 'nosniff')
    await gateway.close()
  },
)
