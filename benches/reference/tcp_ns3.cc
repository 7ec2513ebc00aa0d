// The topology and the settings of tcp.tcl in ns-3, where its TCP is nearer to today's: SACK, CUBIC with beta 0.7.
//
//   tcp_ns3 variant=TcpCubic rate_mbps=10 one_way_ms=20 queue=33 ...
//
// Prints the bottleneck's queue in the form of an ns-2 trace, so that collect.py reads both alike, then a line a flow.
// `queue` counts the packet in service as ns-2 does: ns-3 keeps it apart, hence the device's queue is one shorter.
// Packets are 1500 bytes on the wire: 1446 of payload, 12 timestamps, 20 TCP, 20 IP, 2 PPP.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace {

// Without timestamps it is 1458.
uint32_t PAYLOAD = 1446;
constexpr uint16_t PORT = 5000;

using Settings = std::map<std::string, std::string>;

// Exits with status 2 on a setting that does not exist, or that ns-3 has no counterpart for.
Settings Parse(int argc, char** argv)
{
    Settings settings{{"variant", "TcpNewReno"}, {"rate_mbps", "10"}, {"one_way_ms", "20"}, {"extra_ms", "0"},
                      {"queue", "33"},           {"flows", "1"},      {"delack", "0"},      {"iw", "2"},
                      {"min_rto", "0.2"},        {"jitter_ms", "0"},  {"loss", "0"},        {"seed", "1"},
                      {"from", "20"},            {"to", "120"},       {"bytes", "0"},       {"trace", "1"}};
    for (int i = 1; i < argc; i++)
    {
        const std::string word = argv[i];
        const auto at = word.find('=');
        const auto found = settings.find(word.substr(0, at));
        if (at == std::string::npos || found == settings.end())
        {
            std::cerr << "tcp_ns3: no such setting: " << word << "\n";
            std::exit(2);
        }
        found->second = word.substr(at + 1);
    }
    for (const char* fixed : {"jitter_ms", "loss"})
    {
        if (std::stod(settings[fixed]) != 0)
        {
            std::cerr << "tcp_ns3: " << fixed << " is for ns-2 only\n";
            std::exit(2);
        }
    }
    return settings;
}

// The trace's fields are ns-2's; those that collect.py does not read are dashes.
void Line(char event, Ptr<const Packet> packet)
{
    std::printf("%c %.9f - - tcp %u - - - - - %lu\n", event, Simulator::Now().GetSeconds(), packet->GetSize(),
                packet->GetUid());
}

void Enqueued(Ptr<const Packet> packet)
{
    Line('+', packet);
}

void Dequeued(Ptr<const Packet> packet)
{
    Line('-', packet);
}

void Dropped(Ptr<const Packet> packet)
{
    // ns-2 lets a packet enter before it finds the queue full.
    Line('+', packet);
    Line('d', packet);
}

void Received(Ptr<const Packet> packet)
{
    Line('r', packet);
}

struct Flow
{
    double start;
    Ptr<BulkSendApplication> source;
    Ptr<PacketSink> sink;
    uint64_t receivedBefore = 0;
    uint32_t timeoutsBefore = 0;
    uint32_t timeouts = 0;

    void Watch()
    {
        source->GetSocket()->TraceConnectWithoutContext("CongState", MakeCallback(&Flow::StateChanged, this));
    }

    void StateChanged(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t state)
    {
        timeouts += state == TcpSocketState::CA_LOSS;
    }

    void Remember()
    {
        receivedBefore = sink->GetTotalRx();
        timeoutsBefore = timeouts;
    }
};

void Configure(Settings& settings)
{
    std::istringstream words(settings["variant"]);
    std::string algorithm, option;
    std::getline(words, algorithm, '/');
    std::getline(words, option);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::" + algorithm));
    if (option == "nosack")
    {
        Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    }
    else if (option == "nohystart")
    {
        Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(false));
    }
    else if (option == "nots")
    {
        // ns-3's timestamps have milliseconds; without them it measures round trips with its clock.
        Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
        PAYLOAD += 12;
    }
    else if (!option.empty())
    {
        std::cerr << "tcp_ns3: no such option: " << option << "\n";
        std::exit(2);
    }
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(PAYLOAD));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(100'000'000));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(100'000'000));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(std::stoul(settings["iw"])));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(settings["delack"] == "0" ? 1 : 2));
    // ns-2's interval_; ns-3's own default is 200 ms.
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(100)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(std::stod(settings["min_rto"]))));
    RngSeedManager::SetRun(std::stoul(settings["seed"]));
}

NetDeviceContainer Join(Ptr<Node> a, Ptr<Node> b, double mbps, double delayMs, uint32_t queue)
{
    PointToPointHelper link;
    // With flow control a queue disc would stand above the device's queue.
    link.DisableFlowControl();
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(mbps * 1e6))));
    link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(static_cast<uint64_t>(delayMs * 1e3))));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queue)));
    return link.Install(a, b);
}

} // namespace

int main(int argc, char** argv)
{
    Settings settings = Parse(argc, argv);
    Configure(settings);
    const uint32_t count = std::stoul(settings["flows"]);
    const double rate = std::stod(settings["rate_mbps"]), delay = std::stod(settings["one_way_ms"]);
    const Time from = Seconds(std::stod(settings["from"])), to = Seconds(std::stod(settings["to"]));
    std::vector<double> extra;
    std::istringstream list(settings["extra_ms"]);
    for (double value; list >> value;)
    {
        extra.push_back(value);
    }

    NodeContainer routers(2), senders(count), receivers(count);
    InternetStackHelper stack;
    stack.Install(routers);
    stack.Install(senders);
    stack.Install(receivers);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    const auto address = [&addresses](const NetDeviceContainer& devices) {
        const Ipv4Address second = addresses.Assign(devices).GetAddress(1);
        addresses.NewNetwork();
        return second;
    };

    NetDeviceContainer middle = Join(routers.Get(0), routers.Get(1), rate, delay, std::stoul(settings["queue"]) - 1);
    // The way back must not drop ACKs.
    DynamicCast<PointToPointNetDevice>(middle.Get(1))->GetQueue()->SetMaxSize(QueueSize("100000p"));
    address(middle);
    const auto queue = DynamicCast<PointToPointNetDevice>(middle.Get(0))->GetQueue();
    queue->TraceConnectWithoutContext("Enqueue", MakeCallback(&Enqueued));
    queue->TraceConnectWithoutContext("Dequeue", MakeCallback(&Dequeued));
    queue->TraceConnectWithoutContext("Drop", MakeCallback(&Dropped));
    middle.Get(1)->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&Received));

    Ptr<UniformRandomVariable> starts = CreateObject<UniformRandomVariable>();
    std::vector<Flow> flows(count);
    for (uint32_t i = 0; i < count; i++)
    {
        address(Join(senders.Get(i), routers.Get(0), 1000, extra[i % extra.size()], 100'000));
        const Ipv4Address receiver = address(Join(routers.Get(1), receivers.Get(i), 1000, 0, 100'000));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(receiver, PORT));
        // Whole packets, as with ns-2.
        const uint64_t bytes = std::stoull(settings["bytes"]);
        source.SetAttribute("MaxBytes", UintegerValue((bytes + PAYLOAD - 1) / PAYLOAD * PAYLOAD));
        source.SetAttribute("SendSize", UintegerValue(PAYLOAD));
        Flow& flow = flows[i];
        flow.start = starts->GetValue(0, 1);
        flow.sink = DynamicCast<PacketSink>(sink.Install(receivers.Get(i)).Get(0));
        ApplicationContainer application = source.Install(senders.Get(i));
        flow.source = DynamicCast<BulkSendApplication>(application.Get(0));
        application.Start(Seconds(flow.start));
        Simulator::Schedule(Seconds(flow.start) + NanoSeconds(1), &Flow::Watch, &flow);
        Simulator::Schedule(from, &Flow::Remember, &flow);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Stop(to);
    Simulator::Run();
    for (uint32_t i = 0; i < count; i++)
    {
        const Flow& flow = flows[i];
        std::printf("flow %u start %.9f acked %.6f timeouts %u payload %u\n", i, flow.start,
                    double(flow.sink->GetTotalRx() - flow.receivedBefore) / PAYLOAD,
                    flow.timeouts - flow.timeoutsBefore, PAYLOAD);
    }
    Simulator::Destroy();
    return 0;
}
