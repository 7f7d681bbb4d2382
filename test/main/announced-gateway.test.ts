import t from 'tap'
import { type Config, readConfig } from '../../config/read.js'
import { announcedGateway } from '../../src/main/network.js'

function configOf(environment: Record<string, string>): Config {
  const config = readConfig(environment)
  if (Array.isArray(config)) throw new Error(config.join())
  return config
}

t.test('clients are told where they can reach the gateway', async (t) => {
  const announced = (environment: Record<string, string>, here: string | undefined): string =>
    announcedGateway(configOf(environment), here)
  const here = 'http://127.0.0.1:3000'
  const named = { NETWORK: 'mainnet', ARNS_ROOT_HOST: 'Gateway.example,other.example' }
  t.equal(announced(named, here), 'https://gateway.example')
  t.equal(announced({ ...named, SANDBOX_PROTOCOL: 'http' }, here), 'http://gateway.example')
  t.equal(announced({ NETWORK: 'mainnet' }, here), here)
  t.equal(
    announced({ NETWORK: 'devnet', ARNS_ROOT_HOST: 'localhost' }, here),
    here,
    'names have a port there',
  )
  const elsewhere = { NETWORK: 'mainnet', TRUSTED_GATEWAY_URL: 'https://first.example' }
  t.equal(announced(elsewhere, undefined), 'https://first.example')
  const news = {
    ...elsewhere,
    SERVICES: 'upload',
    UPLOAD_GATEWAY_ADMIN_URL: 'https://own.example/gateway/admin/',
    UPLOAD_GATEWAY_ADMIN_KEY: 'key',
  }
  t.equal(announced(news, undefined), 'https://own.example', 'the one that is told of uploads goes first')
  t.equal(
    announced({ ...news, UPLOAD_GATEWAY_ADMIN_URL: 'http://core:4000/ar-io/admin' }, undefined),
    'http://core:4000',
  )
  t.equal(announced({ ...news, ARNS_ROOT_HOST: 'public.example' }, undefined), 'https://public.example')
  t.equal(announced({ NETWORK: 'devnet', SERVICES: 'upload' }, undefined), '', 'there is none')
})

t.test('a gateway elsewhere has an address and a key', async (t) => {
  const wrong = ['UPLOAD_GATEWAY_ADMIN_URL and UPLOAD_GATEWAY_ADMIN_KEY need each other']
  t.same(readConfig({ UPLOAD_GATEWAY_ADMIN_URL: 'https://own.example/gateway/admin' }), wrong)
  t.same(readConfig({ UPLOAD_GATEWAY_ADMIN_KEY: 'key' }), wrong)
})
