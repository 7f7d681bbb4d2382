import t from 'tap'
import { type Config, readConfig } from '../../config/read.js'
import { toldGateway } from '../../src/main/network.js'

function configOf(environment: Record<string, string>): Config {
  const config = readConfig(environment)
  if (Array.isArray(config)) throw new Error(config.join())
  return config
}

t.test('clients are told where they can reach the gateway', async (t) => {
  const told = (environment: Record<string, string>, here: string | undefined): string =>
    toldGateway(configOf(environment), here)
  const here = 'http://127.0.0.1:3000'
  const named = { NETWORK: 'mainnet', ARNS_ROOT_HOST: 'Gateway.example,other.example' }
  t.equal(told(named, here), 'https://gateway.example')
  t.equal(told({ ...named, SANDBOX_PROTOCOL: 'http' }, here), 'http://gateway.example')
  t.equal(told({ NETWORK: 'mainnet' }, here), here)
  t.equal(told({ NETWORK: 'devnet', ARNS_ROOT_HOST: 'localhost' }, here), here, 'names have a port there')
  const elsewhere = { NETWORK: 'mainnet', TRUSTED_GATEWAY_URL: 'https://first.example' }
  t.equal(told(elsewhere, undefined), 'https://first.example')
})
