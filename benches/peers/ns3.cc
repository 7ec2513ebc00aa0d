// The dumbbell of benches/README.md in ns-3.   ns3 --cbr=10 --tcp=0 --pairs=10 --rate_mbps=20 --queue=100 --duration_s=600
//
// No traces, no traffic-control layer: the queue under test is the device's drop-tail queue, as with the peers.
// Prints one JSON line in the form that benches/run.py reads.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

using namespace ns3;

namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point from, Clock::time_point to)
{
    return std::chrono::duration<double>(to - from).count();
}

// 1200 bytes of IP packet, 28 of them headers, every 9.6 ms are 1 Mb/s.
constexpr uint32_t CBR_PAYLOAD = 1200 - 20 - 8;
const Time CBR_INTERVAL = MicroSeconds(9600);
constexpr uint16_t CBR_PORT = 10000;
constexpr uint16_t TCP_PORT = 5000;
// 1500 bytes of IP packet less 20 of IP, 20 of TCP and 12 of timestamps.
constexpr uint32_t TCP_PAYLOAD = 1448;
// The path of the TCP work holds 0.58 MB (50 Mb/s times 44 ms, and 200 packets). Larger buffers only slow ns-3 down:
// 15 MB halve its speed.
constexpr uint32_t TCP_BUFFER = 1'000'000;

class Dumbbell
{
  public:
    Dumbbell(uint32_t pairs, double rateMbps, uint32_t queue)
    {
        NodeContainer routers(2), senders(pairs), receivers(pairs);
        InternetStackHelper stack;
        stack.Install(routers);
        stack.Install(senders);
        stack.Install(receivers);
        m_addresses.SetBase("10.0.0.0", "255.255.255.252");

        PointToPointHelper link;
        // A device with flow control gets an FqCoDel above it, and its full queue makes that layer drop.
        // Without it the device's drop-tail queue is the only queue and counts its own drops.
        link.DisableFlowControl();
        link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(rateMbps * 1e6))));
        link.SetChannelAttribute("Delay", TimeValue(MilliSeconds(20)));
        link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queue)));
        NetDeviceContainer middle = Join(link, routers.Get(0), routers.Get(1)).first;
        m_bottleneck = DynamicCast<PointToPointNetDevice>(middle.Get(0))->GetQueue();

        PointToPointHelper access;
        access.DisableFlowControl();
        access.SetDeviceAttribute("DataRate", DataRateValue(DataRate("1Gbps")));
        access.SetChannelAttribute("Delay", TimeValue(MilliSeconds(1)));
        access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));
        for (uint32_t i = 0; i < pairs; i++)
        {
            Join(access, senders.Get(i), routers.Get(0));
            m_receiverAddress.push_back(Join(access, routers.Get(1), receivers.Get(i)).second);
        }
        m_senders = senders;
        m_receivers = receivers;
    }

    void AddCbr(uint32_t index, uint32_t pair, Time start)
    {
        const uint16_t port = CBR_PORT + index;
        PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sink.Install(m_receivers.Get(pair));
        UdpClientHelper source(m_receiverAddress[pair], port);
        source.SetAttribute("PacketSize", UintegerValue(CBR_PAYLOAD));
        source.SetAttribute("Interval", TimeValue(CBR_INTERVAL));
        source.SetAttribute("MaxPackets", UintegerValue(UINT32_MAX));
        source.Install(m_senders.Get(pair)).Start(start);
    }

    void AddTcp(uint32_t index, uint32_t pair, Time start)
    {
        const uint16_t port = TCP_PORT + index;
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sink.Install(m_receivers.Get(pair));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(m_receiverAddress[pair], port));
        source.SetAttribute("MaxBytes", UintegerValue(0));
        source.Install(m_senders.Get(pair)).Start(start);
    }

    // What the queue was given less what it dropped and still holds: the packets that began transmission.
    uint32_t Sent() const
    {
        return m_bottleneck->GetTotalReceivedPackets() - m_bottleneck->GetNPackets();
    }

    uint32_t Dropped() const
    {
        return m_bottleneck->GetTotalDroppedPackets();
    }

  private:
    // The devices, and the address of the second node.
    std::pair<NetDeviceContainer, Ipv4Address> Join(PointToPointHelper& link, Ptr<Node> a, Ptr<Node> b)
    {
        NetDeviceContainer devices = link.Install(a, b);
        Ipv4InterfaceContainer interfaces = m_addresses.Assign(devices);
        m_addresses.NewNetwork();
        return {devices, interfaces.GetAddress(1)};
    }

    Ipv4AddressHelper m_addresses;
    NodeContainer m_senders, m_receivers;
    std::vector<Ipv4Address> m_receiverAddress;
    Ptr<Queue<Packet>> m_bottleneck;
};

} // namespace

int main(int argc, char** argv)
{
    uint32_t cbr = 10, tcp = 0, pairs = 10, queue = 100;
    double rateMbps = 20, durationS = 600;
    CommandLine command;
    command.AddValue("cbr", "CBR flows of 1 Mb/s", cbr);
    command.AddValue("tcp", "TCP flows", tcp);
    command.AddValue("pairs", "host pairs", pairs);
    command.AddValue("rate_mbps", "bottleneck rate, Mb/s", rateMbps);
    command.AddValue("queue", "bottleneck queue, packets", queue);
    command.AddValue("duration_s", "simulated time, s", durationS);
    command.Parse(argc, argv);

    const auto begun = Clock::now();
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(TCP_PAYLOAD));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(TCP_BUFFER));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(TCP_BUFFER));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));

    Dumbbell net(pairs, rateMbps, queue);
    for (uint32_t i = 0; i < cbr; i++)
    {
        net.AddCbr(i, i % pairs, CBR_INTERVAL * i / cbr);
    }
    for (uint32_t i = 0; i < tcp; i++)
    {
        net.AddTcp(i, (cbr + i) % pairs, MilliSeconds(100) * i);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    const auto running = Clock::now();
    Simulator::Stop(Seconds(durationS));
    Simulator::Run();
    const auto ended = Clock::now();
    std::printf("{\"packets\": %u, \"drops\": %u, \"hops_per_packet\": 3, \"setup_s\": %.6f, \"run_s\": %.6f}\n",
                net.Sent(), net.Dropped(), Since(begun, running), Since(running, ended));
    Simulator::Destroy();
    return 0;
}
