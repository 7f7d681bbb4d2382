/** What an edge thread did not find in the catalog is not read there again, unless something was learned meanwhile. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { attributesOf } from '../../../src/catalog/attributes.js'
import { gateways, rig, someId, sure, upstream } from '../rig.js'

t.test('the catalog is read where its generation changed, and not where it did not', async (t) => {
  const body = randomBytes(500)
  const server = await upstream((_, response) => {
    response.writeHead(200, { 'content-length': body.length })
    response.end(body)
  })
  const house = await rig({ source: gateways([server.url]) })
  const edge = house.edge()
  let reads = 0
  const read = house.catalog.attributes.bind(house.catalog)
  house.catalog.attributes = (id) => {
    reads += 1
    return read(id)
  }
  const fresh = someId()
  sure(await edge.open(fresh, undefined, { absentAt: house.catalog.generation(fresh) }))
  t.equal(reads, 0)
  const learned = someId()
  const absentAt = house.catalog.generation(learned)
  const known = { id: learned, size: body.length, verified: false, trusted: false }
  const attributes = [attributesOf(known, { contentType: 'text/x-known' })]
  await house.keeper.ask({ kind: 'learn', attributes })
  const opened = sure(await edge.open(learned, undefined, { absentAt }))
  t.equal(opened.attributes.contentType, 'text/x-known')
  t.ok(reads > 0)
  await house.close()
  await server.close()
})
